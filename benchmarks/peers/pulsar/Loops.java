package org.apache.bookkeeper.mledger.impl.cache;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.PooledByteBufAllocator;
import io.netty.buffer.Unpooled;
import io.netty.util.concurrent.FastThreadLocalThread;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.Collection;
import java.util.concurrent.CountDownLatch;
import java.util.function.Consumer;
import org.apache.bookkeeper.mledger.EntryReadCountHandler;
import org.apache.bookkeeper.mledger.Position;
import org.apache.bookkeeper.mledger.PositionFactory;
import org.apache.bookkeeper.mledger.ReferenceCountedEntry;
import org.apache.bookkeeper.mledger.impl.EntryImpl;

/**
 * Measured loops on the classes of a released managed-ledger jar, the peers of those in loops.pyx. It reads the name of
 * a loop from its standard input and prints its figure: nanoseconds of processor time of one operation, reads of
 * a microsecond, or bytes of an entry.
 */
public final class Loops {
    private static final long LEDGER = 7;
    private static final int COUNT = 100_000;
    private static final int TAIL = 1_000;
    private static final int READS = 1_000_000;
    private static final long HOUR = 3_600_000_000_000L;
    private static final byte[] PAYLOAD = new byte[100];
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    /** Those of 5.0.1, which inserts through an Inserter; null before. */
    private static final MethodHandle NEW_INSERTER;
    private static final MethodHandle INSERT;
    private static final MethodHandle UPDATE_IF_CACHED;
    private static final MethodHandle UPDATE_READS;

    static {
        MethodHandle inserter = null;
        MethodHandle insert = null;
        MethodHandle update = null;
        MethodHandle reads = null;
        try {
            MethodHandles.Lookup lookup = MethodHandles.lookup();
            Class<?> type = Class.forName(RangeCache.class.getName() + "$Inserter");
            inserter = lookup.findVirtual(RangeCache.class, "newInserter", MethodType.methodType(type))
                    .asType(MethodType.methodType(Object.class, RangeCache.class));
            insert = lookup.findVirtual(type, "put", MethodType.methodType(
                            boolean.class, Position.class, ReferenceCountedEntry.class, int.class))
                    .asType(MethodType.methodType(boolean.class, Object.class, Position.class,
                            ReferenceCountedEntry.class, int.class));
            update = lookup.findVirtual(type, "updateIfCached", MethodType.methodType(
                            boolean.class, Position.class, Consumer.class))
                    .asType(MethodType.methodType(boolean.class, Object.class, Position.class, Consumer.class));
            reads = lookup.findVirtual(EntryImpl.class, "updateExpectedReadCount", MethodType.methodType(
                    void.class, EntryReadCountHandler.class));
        } catch (ClassNotFoundException older) {
            // 4.2.4
        } catch (ReflectiveOperationException error) {
            throw new ExceptionInInitializerError(error);
        }
        NEW_INSERTER = inserter;
        INSERT = insert;
        UPDATE_IF_CACHED = update;
        UPDATE_READS = reads;
    }

    private final RangeCacheRemovalQueue queue;
    private final RangeCache cache;
    private final Object inserter;
    private volatile boolean ended;

    private Loops(int requeues) throws Throwable {
        queue = new RangeCacheRemovalQueue(requeues, false);
        cache = new RangeCache(queue);
        inserter = NEW_INSERTER == null ? null : NEW_INSERTER.invoke(cache);
    }

    /** Processor time of this thread: what others do on the machine does not count, nor do the collector's threads. */
    private static long now() {
        return THREADS.getCurrentThreadCpuTime();
    }

    private static Position at(long id) {
        return PositionFactory.create(LEDGER, id);
    }

    /** As RangeEntryCacheImpl.insert does, the payload in pooled memory of its own. */
    private void insert(Position key, ByteBuf data, int expected) throws Throwable {
        EntryImpl entry = EntryImpl.create(key, data, expected);
        data.release();
        entry.setDecreaseReadCountOnRelease(false);
        if (INSERT == null) {
            if (!cache.put(key, entry, entry.getLength())) {
                entry.release();
            }
        } else if (!(boolean) INSERT.invokeExact(inserter, key, (ReferenceCountedEntry) entry, entry.getLength())) {
            Consumer<ReferenceCountedEntry> adopts = cached -> {
                try {
                    UPDATE_READS.invokeExact((EntryImpl) cached, entry.getReadCountHandler());
                } catch (Throwable error) {
                    throw new IllegalStateException(error);
                }
            };
            boolean updated = (boolean) UPDATE_IF_CACHED.invokeExact(inserter, key, adopts);
            entry.release();
        }
    }

    private long put(long ledger, int count, int expected) throws Throwable {
        long start = now();
        for (int i = 0; i < count; i++) {
            ByteBuf data = PooledByteBufAllocator.DEFAULT.directBuffer(PAYLOAD.length);
            data.writeBytes(PAYLOAD);
            insert(PositionFactory.create(ledger, i), data, expected);
        }
        return now() - start;
    }

    private long evict(boolean byTime) {
        long start = now();
        if (byTime) {
            queue.evictLEntriesBeforeTimestamp(System.nanoTime() + HOUR);
        } else {
            queue.evictLeastAccessedEntries(Math.max(1, cache.getSize()));
        }
        return now() - start;
    }

    private static int[] drawn(int span, long first, int count) {
        int[] ids = new int[count];
        long state = 88172645463325252L + first;
        for (int i = 0; i < count; i++) {
            state ^= state << 13;
            state ^= state >>> 7;
            state ^= state << 17;
            ids[i] = (int) ((state >>> 32) * span >>> 32);
        }
        return ids;
    }

    private long hits(int span, long first, boolean shuffled, int count) {
        int[] drawn = shuffled ? drawn(span, first, count) : null;
        long at = first;
        long start = now();
        for (int i = 0; i < count; i++) {
            if (shuffled) {
                at = drawn[i];
            } else if (at + 1 < span) {
                at++;
            } else {
                at = 0;
            }
            ReferenceCountedEntry entry = cache.get(at(at));
            if (entry != null) {
                entry.release();
            }
        }
        return now() - start;
    }

    private long misses() {
        long start = now();
        for (int i = 0; i < READS; i++) {
            cache.get(PositionFactory.create(LEDGER + 1, i));
        }
        return now() - start;
    }

    private long dispatches() {
        long start = now();
        for (int i = 0; i < READS; i++) {
            ReferenceCountedEntry entry = cache.get(at(i % TAIL));
            EntryImpl copy = EntryImpl.create(entry);
            entry.release();
            copy.release();
        }
        return now() - start;
    }

    private long ranges() {
        long start = now();
        for (int first = 0; first < COUNT; first += 100) {
            Collection<ReferenceCountedEntry> found = cache.getRange(at(first), at(first + 99));
            for (ReferenceCountedEntry entry : found) {
                entry.release();
            }
        }
        return now() - start;
    }

    /** As ranges, of entries that were read before. */
    private long rangesAgain() {
        ranges();
        return ranges();
    }

    private long remove() {
        long start = now();
        cache.removeRange(at(0), at(COUNT), true);
        return now() - start;
    }

    /** Two readers beside a thread that inserts and evicts; reads of a microsecond. */
    private double readers() throws Throwable {
        put(LEDGER, TAIL, 1);
        CountDownLatch ready = new CountDownLatch(3);
        long[] spent = new long[2];
        Thread[] threads = new Thread[3];
        for (int i = 0; i < 3; i++) {
            int number = i;
            threads[i] = new FastThreadLocalThread(() -> {
                try {
                    ready.countDown();
                    ready.await();
                    if (number == 2) {
                        churn();
                    } else {
                        long start = System.nanoTime();
                        hits(TAIL, number * TAIL / 2, false, READS);
                        spent[number] = System.nanoTime() - start;
                    }
                } catch (Throwable error) {
                    throw new IllegalStateException(error);
                }
            });
            threads[i].start();
        }
        threads[0].join();
        threads[1].join();
        ended = true;
        threads[2].join();
        return 2.0 * READS / Math.max(spent[0], spent[1]) * 1000;
    }

    private void churn() throws Throwable {
        long id = 0;
        while (!ended) {
            for (int i = 0; i < 4096; i++) {
                ByteBuf data = PooledByteBufAllocator.DEFAULT.directBuffer(PAYLOAD.length);
                data.writeBytes(PAYLOAD);
                insert(PositionFactory.create(LEDGER + 2, id++), data, 0);
            }
            queue.evictLeastAccessedEntries(4096L * PAYLOAD.length);
        }
    }

    private static long used() throws InterruptedException {
        for (int i = 0; i < 3; i++) {
            System.gc();
            Thread.sleep(50);
        }
        Runtime runtime = Runtime.getRuntime();
        return runtime.totalMemory() - runtime.freeMemory();
    }

    /** Heap bytes of an entry; all entries share the bytes of one payload. */
    private double bytes() throws Throwable {
        long before = used();
        for (int i = 0; i < 5 * COUNT; i++) {
            insert(at(i), Unpooled.wrappedBuffer(PAYLOAD), 0);
        }
        return (used() - before) / (5.0 * COUNT);
    }

    private static double figure(String name) throws Throwable {
        Loops loops = new Loops(name.equals("readers") ? 65535 : 5);
        double figure;
        switch (name) {
            case "put":
                loops.put(LEDGER, COUNT, 0);
                loops.evict(true);
                figure = (double) (loops.put(LEDGER, COUNT, 0) + loops.evict(true)) / COUNT;
                break;
            case "readers":
                figure = loops.readers();
                break;
            case "bytes":
                figure = loops.bytes();
                break;
            default:
                loops.put(LEDGER, name.equals("tail") || name.equals("thousand") || name.equals("dispatch")
                        ? TAIL : COUNT, 0);
                figure = switch (name) {
                    case "duplicate" -> (double) loops.put(LEDGER, COUNT, 0) / COUNT;
                    case "range" -> (double) loops.ranges() / COUNT;
                    case "again" -> (double) loops.rangesAgain() / COUNT;
                    case "time" -> (double) loops.evict(true) / COUNT;
                    case "size" -> (double) loops.evict(false) / COUNT;
                    case "remove" -> (double) loops.remove() / COUNT;
                    case "tail" -> (double) loops.hits(TAIL, 0, false, READS) / READS;
                    case "thousand" -> (double) loops.hits(TAIL, 0, true, READS) / READS;
                    case "random" -> (double) loops.hits(COUNT, 0, true, READS) / READS;
                    case "miss" -> (double) loops.misses() / READS;
                    case "dispatch" -> (double) loops.dispatches() / READS;
                    default -> throw new IllegalArgumentException(name);
                };
        }
        loops.cache.clear();
        loops.evict(true);
        return figure;
    }

    private static void answer(PrintStream answers) {
        BufferedReader names = new BufferedReader(new InputStreamReader(System.in));
        try {
            for (String name = names.readLine(); name != null; name = names.readLine()) {
                answers.println(figure(name));
                answers.flush();
            }
        } catch (Throwable error) {
            error.printStackTrace();
        }
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        // What the classes log does not come between the answers.
        System.setOut(System.err);
        // Netty's pools are fast in its own threads only, which a broker has.
        Thread thread = new FastThreadLocalThread(() -> answer(answers));
        thread.start();
        thread.join();
    }
}
