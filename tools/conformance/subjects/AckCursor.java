package org.apache.bookkeeper.mledger.impl;

import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.ArrayDeque;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.IntFunction;
import org.apache.bookkeeper.client.CursorLedger;
import org.apache.bookkeeper.mledger.AsyncCallbacks;
import org.apache.bookkeeper.mledger.ManagedLedgerConfig;
import org.apache.bookkeeper.mledger.ManagedLedgerException;
import org.apache.bookkeeper.mledger.Position;
import org.apache.bookkeeper.mledger.PositionFactory;
import org.apache.bookkeeper.mledger.proto.ManagedLedgerInfo;
import org.apache.bookkeeper.mledger.proto.PositionInfo;
import org.apache.pulsar.common.util.collections.LongPairRangeSet;

/**
 * A cursor over a log of three ledgers whose acknowledgements count as stored at once. The object is allocated: its
 * constructor wants a broker. The bytes that it would append to its ledger are kept.
 */
public class AckCursor extends ManagedCursorImpl {
    private static final Position NEVER_READ = PositionFactory.create(Long.MAX_VALUE - 1, 0);

    /** Never called: the object is allocated. */
    AckCursor() {
        super(null, null, null);
    }

    @Override
    protected void internalAsyncMarkDelete(Position position, Map<String, Long> properties,
            AsyncCallbacks.MarkDeleteCallback callback, Object context, Runnable align) {
        new MarkDeleteEntry(position, Map.of(), callback, context, align).alignAcknowledgeStatus();
        callback.markDeleteComplete(context);
    }

    /** A cursor at a position, over a log whose ledgers have so many entries each. */
    public static AckCursor at(Position mark, Map<Long, Long> log, ManagedLedgerConfig config, Allocator allocator)
            throws Exception {
        ManagedLedgerImpl ledger = (ManagedLedgerImpl) allocator.allocate(ManagedLedgerImpl.class);
        ConcurrentSkipListMap<Long, ManagedLedgerInfo.LedgerInfo> ledgers = new ConcurrentSkipListMap<>();
        log.forEach((id, entries) -> ledgers.put(
                id, new ManagedLedgerInfo.LedgerInfo().setLedgerId(id).setEntries(entries).setSize(entries)));
        Map.Entry<Long, ManagedLedgerInfo.LedgerInfo> last = ledgers.lastEntry();
        allocator.set(ledger, "ledgers", ledgers);
        allocator.set(ledger, "config", config);
        allocator.set(ledger, "name", "public/default/persistent/log");
        ledger.lastConfirmedEntry = PositionFactory.create(last.getKey(), last.getValue().getEntries() - 1);
        AckCursor cursor = (AckCursor) allocator.allocate(AckCursor.class);
        allocator.set(cursor, "ledger", ledger);
        allocator.set(cursor, "name", "cursor");
        allocator.set(cursor, "lock", new ReentrantReadWriteLock());
        allocator.set(cursor, "pendingMarkDeleteOps", new ArrayDeque<>());
        allocator.set(cursor, "reusablePositionInfo", new PositionInfo());
        allocator.set(cursor, "batchDeletedIndexes", new ConcurrentSkipListMap<Position, BitSet>());
        allocator.set(cursor, "state", State.Open);
        cursor.markDeletePosition = mark;
        cursor.readPosition = NEVER_READ;
        allocator.set(cursor, "individualDeletedMessages", ranges(cursor));
        allocator.complete(cursor, ledger);
        return cursor;
    }

    /** The set of ranges, whose class each release has for itself. */
    private static Object ranges(AckCursor cursor) throws Exception {
        LongPairRangeSet.LongPairConsumer<Position> made = PositionFactory::create;
        for (Constructor<?> each : field("individualDeletedMessages").getType().getDeclaredConstructors()) {
            each.setAccessible(true);
            if (each.getParameterCount() == 2) {
                return each.newInstance(made, true);
            }
            if (each.getParameterCount() == 3) {
                LongPairRangeSet.RangeBoundConsumer<Position> bound = position ->
                        new LongPairRangeSet.LongPair(position.getLedgerId(), position.getEntryId());
                return each.newInstance(made, bound, cursor);
            }
        }
        throw new NoSuchMethodException("a constructor of the set of ranges");
    }

    private static Field field(String name) throws Exception {
        Field field = ManagedCursorImpl.class.getDeclaredField(name);
        field.setAccessible(true);
        return field;
    }

    /** How objects are made and fields set without constructors. */
    public interface Allocator {
        Object allocate(Class<?> type) throws Exception;

        void set(Object object, String name, Object value) throws Exception;

        /** Sets what only one of the releases has. */
        void complete(ManagedCursorImpl cursor, ManagedLedgerImpl ledger) throws Exception;
    }

    /** Acknowledges a position; "done", or "refused". */
    public String acknowledge(Position position) {
        String[] answer = {"no answer"};
        asyncDelete(List.of(position), new AsyncCallbacks.DeleteCallback() {
            @Override
            public void deleteComplete(Object context) {
                answer[0] = "done";
            }

            @Override
            public void deleteFailed(ManagedLedgerException error, Object context) {
                answer[0] = "refused";
            }
        }, null);
        return answer[0];
    }

    /** Acknowledges everything up to a position; "done", "refused", or "known" for one before the mark. */
    public String acknowledgeUpTo(Position position) {
        String[] answer = {"no answer"};
        asyncMarkDelete(position, new AsyncCallbacks.MarkDeleteCallback() {
            @Override
            public void markDeleteComplete(Object context) {
                answer[0] = "done";
            }

            @Override
            public void markDeleteFailed(ManagedLedgerException error, Object context) {
                answer[0] = position.compareTo(markDeletePosition) < 0 ? "known" : "refused";
            }
        }, null);
        return answer[0];
    }

    /** The bytes that the cursor appends to its ledger. */
    public byte[] stored(CursorLedger to) {
        persistPositionToLedger(to, new MarkDeleteEntry(markDeletePosition, Map.of(), null, null),
                new VoidCallback() {
                    @Override
                    public void operationComplete() { }

                    @Override
                    public void operationFailed(ManagedLedgerException error) { }
                }, true);
        return to.appended();
    }

    /** Takes the acknowledgements of stored bytes over. */
    public void recover(PositionInfo info) throws Exception {
        recoverIndividualDeletedMessages(info);
        Method batches = ManagedCursorImpl.class.getDeclaredMethod(
                "recoverBatchDeletedIndexes", int.class, IntFunction.class);
        batches.setAccessible(true);
        batches.invoke(this, info.getBatchedEntryDeletionIndexInfosCount(),
                (IntFunction<?>) info::getBatchedEntryDeletionIndexInfoAt);
    }

    /** The ranges, each as its ledger, the position before it and its last entry. */
    public void ranges(LongPairRangeSet.RawRangeProcessor processor) throws Exception {
        ((LongPairRangeSet<?>) field("individualDeletedMessages").get(this)).forEachRawRange(processor);
    }

    public Map<Position, BitSet> batches() {
        return batchDeletedIndexes;
    }}
