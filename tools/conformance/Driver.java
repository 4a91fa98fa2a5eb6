package org.apache.bookkeeper.mledger.impl.cache;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.opentelemetry.api.OpenTelemetry;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Queue;
import java.util.concurrent.ScheduledExecutorService;
import java.util.function.Consumer;
import org.apache.bookkeeper.mledger.EntryReadCountHandler;
import org.apache.bookkeeper.mledger.ManagedCursor;
import org.apache.bookkeeper.mledger.Position;
import org.apache.bookkeeper.mledger.PositionFactory;
import org.apache.bookkeeper.mledger.ReferenceCountedEntry;
import org.apache.bookkeeper.mledger.impl.ActiveManagedCursorContainer;
import org.apache.bookkeeper.mledger.impl.ActiveManagedCursorContainerImpl;
import org.apache.bookkeeper.mledger.impl.ActiveManagedCursorContainerNavigableSetImpl;
import org.apache.bookkeeper.mledger.impl.EntryImpl;
import org.apache.bookkeeper.mledger.impl.ManagedCursorContainerImpl;
import org.apache.commons.lang3.tuple.Pair;

/**
 * Runs operation traces on the classes of the released jars. It reads one operation a line from its
 * standard input and prints one answer a line, at a line "flush" those to all lines before. A line that begins with
 * "new" begins a trace.
 *
 * <p>Time is part of the traces: it is written into the wrappers and the waiting requests, which read the real clock.
 */
public final class Driver {
    interface Subject {
        String call(String[] words) throws Exception;
    }

    private static final long LEDGER = 3;
    private static final int PLACES = 8;
    /** Timestamps above this are the real clock's. */
    static final long REAL = 1L << 40;

    static Object field(Class<?> type, Object object, String name) throws Exception {
        Field field = type.getDeclaredField(name);
        field.setAccessible(true);
        return field.get(object);
    }

    static String pair(Pair<?, ?> pair) {
        return pair.getLeft() + " " + pair.getRight();
    }

    private static String text(Position position) {
        return position == null ? "none" : position.getLedgerId() + ":" + position.getEntryId();
    }

    /** Two range caches over one removal queue. */
    private static final class Caches implements Subject {
        private final RangeCacheRemovalQueue queue;
        private final RangeCache[] caches = new RangeCache[2];
        private final EntryImpl[] held = new EntryImpl[PLACES];
        private final Method getWrapper;
        private final Field entries;
        /** Those of the releases where a cached entry takes the expected reads of a newer addition. */
        private Method newInserter;
        private Method updateIfCached;
        private Method updateExpectedReadCount;

        Caches(String[] words) throws Exception {
            queue = new RangeCacheRemovalQueue(Integer.parseInt(words[2]), words[3].equals("1"));
            Method method = null;
            Field map = null;
            try {
                map = RangeCache.class.getDeclaredField("entries");
                map.setAccessible(true);
            } catch (NoSuchFieldException pages) {
                method = RangeCache.class.getDeclaredMethod("getWrapper", Position.class);
                method.setAccessible(true);
                newInserter = RangeCache.class.getMethod("newInserter");
                updateIfCached = newInserter.getReturnType().getMethod(
                        "updateIfCached", Position.class, Consumer.class);
                updateExpectedReadCount = EntryImpl.class.getMethod(
                        "updateExpectedReadCount", EntryReadCountHandler.class);
            }
            getWrapper = method;
            entries = map;
            for (int i = 0; i < 2; i++) {
                caches[i] = new RangeCache(queue);
            }
        }

        private RangeCacheEntryWrapper wrapper(RangeCache cache, Position key) throws Exception {
            return (RangeCacheEntryWrapper) (entries != null
                    ? ((Map<?, ?>) entries.get(cache)).get(key)
                    : getWrapper.invoke(cache, key));
        }

        /** As RangeEntryCacheImpl.insert of 5.0.1 does with an entry that is cached already. */
        private void adopt(RangeCache cache, Position key, EntryImpl newest) throws Exception {
            if (newInserter == null) {
                return;
            }
            Consumer<ReferenceCountedEntry> adopts = cached -> {
                try {
                    updateExpectedReadCount.invoke(cached, newest.getReadCountHandler());
                } catch (ReflectiveOperationException error) {
                    throw new IllegalStateException(error);
                }
            };
            updateIfCached.invoke(newInserter.invoke(cache), key, adopts);
        }

        private void putBackTime(long now) {
            queue.forEachEntry(wrapper -> {
                if (wrapper.timestampNanos > REAL) {
                    wrapper.timestampNanos = now;
                }
            });
        }

        private static String reads(ReferenceCountedEntry entry) {
            return entry.getReadCountHandler() == null
                    ? "0" : Integer.toString(entry.getReadCountHandler().getExpectedReadCount());
        }

        private void drop(int place) {
            if (held[place] != null) {
                held[place].release();
                held[place] = null;
            }
        }

        @Override
        public String call(String[] words) throws Exception {
            String operation = words[0];
            long[] n = new long[words.length];
            for (int i = 1; i < words.length; i++) {
                n[i] = Long.parseLong(words[i]);
            }
            switch (operation) {
                case "expire": {
                    Pair<Integer, Long> removed = queue.evictLEntriesBeforeTimestamp(n[1]);
                    putBackTime(n[2]);
                    return pair(removed);
                }
                case "free": {
                    Pair<Integer, Long> removed = queue.evictLeastAccessedEntries(n[1]);
                    putBackTime(n[2]);
                    return pair(removed);
                }
                case "release": {
                    boolean there = held[(int) n[1]] != null;
                    drop((int) n[1]);
                    return there ? "released" : "none";
                }
                case "expect": {
                    EntryImpl copy = held[(int) n[1]];
                    if (copy == null) {
                        return "none";
                    }
                    if (copy.getReadCountHandler() != null) {
                        copy.getReadCountHandler().incrementExpectedReadCount();
                    }
                    return reads(copy);
                }
                default:
            }
            RangeCache cache = caches[(int) n[1]];
            Position key = words.length > 2 ? PositionFactory.create(LEDGER, n[2]) : null;
            switch (operation) {
                case "put": {
                    ByteBuf data = Unpooled.wrappedBuffer(new byte[(int) n[3]]);
                    EntryImpl entry = EntryImpl.create(key, data, (int) n[4]);
                    data.release();
                    // What is counted are the copies that are dispatched.
                    entry.setDecreaseReadCountOnRelease(false);
                    boolean inserted = cache.put(key, entry);
                    if (inserted) {
                        wrapper(cache, key).timestampNanos = n[5];
                    } else {
                        adopt(cache, key, entry);
                        entry.release();
                    }
                    return Boolean.toString(inserted);
                }
                case "get": {
                    ReferenceCountedEntry entry = cache.get(key);
                    if (entry == null) {
                        return "miss";
                    }
                    String answer = entry.getLength() + " " + reads(entry);
                    entry.release();
                    return answer;
                }
                case "dispatch": {
                    ReferenceCountedEntry entry = cache.get(key);
                    if (entry == null) {
                        return "miss";
                    }
                    drop((int) n[3]);
                    held[(int) n[3]] = EntryImpl.create(entry);
                    String answer = entry.getLength() + " " + reads(entry);
                    entry.release();
                    return answer;
                }
                case "range": {
                    StringBuilder found = new StringBuilder("found");
                    for (ReferenceCountedEntry entry : cache.getRange(key, PositionFactory.create(LEDGER, n[3]))) {
                        found.append(' ').append(entry.getEntryId());
                        entry.release();
                    }
                    return found.toString();
                }
                case "exists":
                    return Boolean.toString(cache.exists(key));
                case "remove":
                    return pair(cache.removeRange(key, PositionFactory.create(LEDGER, n[3]), n[4] != 0));
                case "clear":
                    return pair(cache.clear());
                case "size":
                    return Long.toString(cache.getSize());
                default:
                    throw new IllegalArgumentException(operation);
            }
        }
    }

    /** A container of cursors; the cursors are names. */
    private static final class Cursors implements Subject {
        private final ActiveManagedCursorContainer container;
        private final Map<String, ManagedCursor> cursors = new HashMap<>();

        Cursors(String kind) {
            container = kind.equals("active") ? new ActiveManagedCursorContainerImpl()
                    : kind.equals("sorted") ? new ActiveManagedCursorContainerNavigableSetImpl()
                    : new ManagedCursorContainerImpl();
        }

        private ManagedCursor cursor(String name) {
            return cursors.computeIfAbsent(name, key -> (ManagedCursor) Proxy.newProxyInstance(
                    ManagedCursor.class.getClassLoader(), new Class<?>[] {ManagedCursor.class},
                    (proxy, method, arguments) -> switch (method.getName()) {
                        case "getName", "toString" -> key;
                        case "isDurable" -> true;
                        case "hashCode" -> key.hashCode();
                        case "equals" -> proxy == arguments[0];
                        default -> throw new UnsupportedOperationException(method.getName());
                    }));
        }

        @Override
        public String call(String[] words) {
            ManagedCursor cursor = words.length > 1 ? cursor(words[1]) : null;
            Position at = words.length > 2 ? PositionFactory.create(LEDGER, Long.parseLong(words[2])) : null;
            switch (words[0]) {
                case "add":
                    container.add(cursor, at);
                    return "added";
                case "update":
                    if (container instanceof ManagedCursorContainerImpl) {
                        Pair<Position, Position> slowest = container.cursorUpdated(cursor, at);
                        return slowest == null ? "none" : text(slowest.getLeft()) + " " + text(slowest.getRight());
                    }
                    container.updateCursor(cursor, at);
                    return "updated";
                case "remove":
                    return Boolean.toString(container.removeCursor(words[1]));
                case "rank":
                    return Integer.toString(container.getNumberOfCursorsAtSamePositionOrBefore(cursor));
                case "slowest":
                    return text(container.getSlowestCursorPosition());
                case "size":
                    return Integer.toString(container.size());
                default:
                    throw new IllegalArgumentException(words[0]);
            }
        }
    }

    /** The limiter of reads in flight. Requests and handles are numbers. */
    private static final class Limiter implements Subject {
        /** Milliseconds of a tick: so many that those which pass meanwhile do not matter. */
        private static final long TICK = 1_000_000;

        private final InflightReadsLimiter limiter;
        private final boolean serves;
        private final Queue<InflightReadsLimiter.QueuedHandle> waiting;
        private final Map<String, InflightReadsLimiter.Handle> handles = new HashMap<>();
        private final List<String> told = new ArrayList<>();
        private final Method timeoutCheck;

        @SuppressWarnings("unchecked")
        Limiter(String[] words) throws Exception {
            long timeout = Long.parseLong(words[4]);
            ScheduledExecutorService executor = (ScheduledExecutorService) Proxy.newProxyInstance(
                    Driver.class.getClassLoader(), new Class<?>[] {ScheduledExecutorService.class},
                    (proxy, method, arguments) -> null);
            limiter = new InflightReadsLimiter(Long.parseLong(words[2]), Integer.parseInt(words[3]),
                    timeout > 0 ? timeout * TICK - TICK / 2 : timeout, executor, OpenTelemetry.noop());
            serves = words[5].equals("1");
            waiting = (Queue<InflightReadsLimiter.QueuedHandle>) field(
                    InflightReadsLimiter.class, limiter, "queuedHandles");
            timeoutCheck = InflightReadsLimiter.class.getDeclaredMethod("timeoutCheck");
            timeoutCheck.setAccessible(true);
        }

        private void pass(long ticks) throws Exception {
            if (waiting == null) {
                return;
            }
            List<InflightReadsLimiter.QueuedHandle> older = new ArrayList<>();
            for (InflightReadsLimiter.QueuedHandle queued : waiting) {
                InflightReadsLimiter.Handle handle = queued.handle();
                older.add(new InflightReadsLimiter.QueuedHandle(new InflightReadsLimiter.Handle(
                        handle.permits(), handle.creationTime() - ticks * TICK, handle.success()),
                        queued.callback()));
            }
            waiting.clear();
            waiting.addAll(older);
            if (!limiter.isDisabled() && (long) field(
                    InflightReadsLimiter.class, limiter, "acquireTimeoutMillis") > 0) {
                timeoutCheck.invoke(limiter);
            }
            if (serves) {
                limiter.release(new InflightReadsLimiter.Handle(0, 0, true));
            }
        }

        @Override
        public String call(String[] words) throws Exception {
            told.clear();
            String answer = "done";
            switch (words[0]) {
                case "acquire": {
                    String name = words[1];
                    Optional<InflightReadsLimiter.Handle> handle = limiter.acquire(
                            Long.parseLong(words[2]), later -> {
                                told.add(name + "=" + (later.success() ? Long.toString(later.permits()) : "failed"));
                                if (later.success()) {
                                    handles.put(name, later);
                                }
                            });
                    if (handle.isEmpty()) {
                        answer = "waits";
                    } else if (!handle.get().success()) {
                        answer = "refused";
                    } else {
                        handles.put(name, handle.get());
                        answer = Long.toString(limiter.isDisabled() ? 0 : handle.get().permits());
                    }
                    break;
                }
                case "release": {
                    InflightReadsLimiter.Handle handle = handles.remove(words[1]);
                    if (handle == null) {
                        answer = "none";
                    } else {
                        limiter.release(handle);
                    }
                    break;
                }
                case "pass":
                    pass(Long.parseLong(words[1]));
                    break;
                default:
                    throw new IllegalArgumentException(words[0]);
            }
            return answer + " " + (limiter.isDisabled() ? -1 : limiter.getRemainingBytes()) + " "
                    + String.join(",", told);
        }
    }

    private static Subject subject(String[] words) throws Exception {
        return switch (words[1]) {
            case "caches" -> new Caches(words);
            case "limiter" -> new Limiter(words);
            case "delayed" -> new DelayedSubject(words);
            case "acks" -> new AckSubject(words);
            case "manager" -> new ManagerSubject(words);
            case "pending" -> new PendingSubject();
            default -> new Cursors(words[1]);
        };
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        PrintStream answers = System.out;
        // What the classes log does not come between the answers.
        System.setOut(System.err);
        StringBuilder all = new StringBuilder();
        Subject subject = null;
        boolean broken = false;
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            if (line.equals("flush")) {
                answers.print(all);
                answers.flush();
                all.setLength(0);
                continue;
            }
            String[] words = line.split(" ");
            String answer = "begun";
            try {
                if (words[0].equals("new")) {
                    subject = subject(words);
                    broken = false;
                } else {
                    answer = broken ? "after an exception" : subject.call(words);
                }
            } catch (Exception error) {
                Throwable cause = error instanceof java.lang.reflect.InvocationTargetException
                        ? error.getCause() : error;
                answer = "raised " + cause.getClass().getSimpleName();
                if (System.getenv("PML_TRACE") != null) {
                    cause.printStackTrace();
                }
                broken = true;
            }
            all.append(answer).append('\n');
        }
    }
}
