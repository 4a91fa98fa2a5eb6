package org.apache.bookkeeper.mledger.impl.cache;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.IntSupplier;
import org.apache.bookkeeper.client.api.ReadHandle;
import org.apache.bookkeeper.mledger.AsyncCallbacks;
import org.apache.bookkeeper.mledger.Entry;
import org.apache.bookkeeper.mledger.ManagedLedgerException;
import org.apache.bookkeeper.mledger.PositionFactory;
import org.apache.bookkeeper.mledger.impl.EntryImpl;
import org.apache.bookkeeper.mledger.impl.ManagedLedgerImpl;

/**
 * The pending reads of one managed ledger. Storage reads are numbered in the order in which they begin and complete
 * when the trace says so. An executor runs its tasks at once. What one operation does is sorted in its answer: the
 * order in which requests get theirs is nobody's promise.
 */
final class PendingSubject implements Driver.Subject {
    /** A storage read under way. */
    private record Read(long ledger, long first, long last, CompletableFuture<List<Entry>> answer) { }

    /** An entry cache whose storage is the trace. Each release calls one of its two methods. */
    static class Cache extends RangeEntryCacheImpl {
        private PendingSubject subject;

        /** Never called: the object is allocated. */
        Cache() {
            super(null, null, false, null, null);
        }

        CompletableFuture<List<Entry>> readFromStorage(
                ReadHandle handle, long first, long last, IntSupplier expected) {
            return subject.start(handle, first, last);
        }

        CompletableFuture<List<Entry>> readFromStorage(
                ReadHandle handle, long first, long last, long bytes, IntSupplier expected) {
            return subject.start(handle, first, last);
        }

        /** What is missing of a read that joined another one. Nothing is cached, so it is a read like any other. */
        void asyncReadEntry0(ReadHandle handle, long first, long last, IntSupplier expected,
                AsyncCallbacks.ReadEntriesCallback callback, Object context, boolean permits) {
            subject.read(handle, first, last, expected, callback, context);
        }

        void asyncReadEntry0(ReadHandle handle, long first, long last, long bytes, IntSupplier expected,
                AsyncCallbacks.ReadEntriesCallback callback, Object context, boolean permits) {
            subject.read(handle, first, last, expected, callback, context);
        }
    }

    private final PendingReadsManager pending;
    private final Method readEntries;
    private final List<Read> reads = new ArrayList<>();
    private final List<String> events = new ArrayList<>();

    PendingSubject() throws Exception {
        ManagedLedgerImpl ledger = ManagerSubject.ledger("a");
        Field executor = ManagedLedgerImpl.class.getDeclaredField("executor");
        ManagerSubject.set(ledger, "executor", Proxy.newProxyInstance(
                PendingSubject.class.getClassLoader(), new Class<?>[] {executor.getType()},
                (proxy, method, arguments) -> {
                    if (arguments != null && arguments.length > 0 && arguments[0] instanceof Runnable task) {
                        task.run();
                    }
                    return null;
                }));
        Cache cache = ManagerSubject.allocate(Cache.class);
        cache.subject = this;
        ManagerSubject.set(cache, "ml", ledger);
        pending = new PendingReadsManager(cache);
        Method found = null;
        for (Method method : PendingReadsManager.class.getDeclaredMethods()) {
            found = method.getName().equals("readEntries") ? method : found;
        }
        readEntries = found;
        readEntries.setAccessible(true);
    }

    private CompletableFuture<List<Entry>> start(ReadHandle handle, long first, long last) {
        events.add("read" + reads.size() + "=" + handle.getId() + ":" + first + "-" + last);
        reads.add(new Read(handle.getId(), first, last, new CompletableFuture<>()));
        return reads.get(reads.size() - 1).answer();
    }

    private static ReadHandle handle(long id) {
        return (ReadHandle) Proxy.newProxyInstance(
                PendingSubject.class.getClassLoader(), new Class<?>[] {ReadHandle.class},
                (proxy, method, arguments) -> switch (method.getName()) {
                    case "getId" -> id;
                    case "toString" -> "ledger " + id;
                    default -> throw new UnsupportedOperationException(method.getName());
                });
    }

    private void request(String name, long ledger, long first, long last) {
        AsyncCallbacks.ReadEntriesCallback callback = new AsyncCallbacks.ReadEntriesCallback() {
            @Override
            public void readEntriesComplete(List<Entry> entries, Object context) {
                StringBuilder ids = new StringBuilder();
                for (Entry entry : entries) {
                    ids.append(ids.length() == 0 ? "" : ",").append(entry.getEntryId());
                    entry.release();
                }
                events.add(name + "=" + ids);
            }

            @Override
            public void readEntriesFailed(ManagedLedgerException error, Object context) {
                events.add(name + "=failed");
            }
        };
        read(handle(ledger), first, last, () -> 0, callback, null);
    }

    private void read(ReadHandle handle, long first, long last, IntSupplier expected,
            AsyncCallbacks.ReadEntriesCallback callback, Object context) {
        try {
            if (readEntries.getParameterCount() == 6) {
                readEntries.invoke(pending, handle, first, last, expected, callback, context);
            } else {
                readEntries.invoke(pending, handle, first, last, 0L, expected, callback, context);
            }
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }

    private String complete(int number, boolean fails) {
        if (number >= reads.size() || reads.get(number).answer().isDone()) {
            return "none";
        }
        Read read = reads.get(number);
        if (fails) {
            read.answer().completeExceptionally(new ManagedLedgerException("of the trace"));
            return "failed";
        }
        List<Entry> entries = new ArrayList<>();
        for (long id = read.first(); id <= read.last(); id++) {
            ByteBuf data = Unpooled.wrappedBuffer(new byte[1]);
            entries.add(EntryImpl.create(PositionFactory.create(read.ledger(), id), data, 0));
            data.release();
        }
        read.answer().complete(entries);
        return "completed";
    }

    @Override
    public String call(String[] words) throws Exception {
        events.clear();
        String answer = "done";
        switch (words[0]) {
            case "request" -> request(
                    words[1], Long.parseLong(words[2]), Long.parseLong(words[3]), Long.parseLong(words[4]));
            case "complete" -> answer = complete(Integer.parseInt(words[1]), false);
            case "fail" -> answer = complete(Integer.parseInt(words[1]), true);
            case "invalidate" -> pending.invalidateLedger(Long.parseLong(words[1]));
            default -> throw new IllegalArgumentException(words[0]);
        }
        Collections.sort(events);
        return answer + " " + String.join(" ", events);
    }
}
