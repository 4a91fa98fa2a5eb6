package org.apache.bookkeeper.mledger.impl.cache;

import io.opentelemetry.api.OpenTelemetry;
import java.lang.reflect.Constructor;
import java.util.BitSet;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.bookkeeper.client.CursorLedger;
import org.apache.bookkeeper.mledger.ManagedLedgerConfig;
import org.apache.bookkeeper.mledger.Position;
import org.apache.bookkeeper.mledger.PositionFactory;
import org.apache.bookkeeper.mledger.impl.AckCursor;
import org.apache.bookkeeper.mledger.impl.AckSetStateUtil;
import org.apache.bookkeeper.mledger.impl.ManagedCursorImpl;
import org.apache.bookkeeper.mledger.impl.ManagedLedgerFactoryImpl;
import org.apache.bookkeeper.mledger.impl.ManagedLedgerImpl;
import org.apache.bookkeeper.mledger.proto.BatchedEntryDeletionIndexInfo;
import org.apache.bookkeeper.mledger.proto.LongListMap;
import org.apache.bookkeeper.mledger.proto.MessageRange;
import org.apache.bookkeeper.mledger.proto.PositionInfo;

/** The acknowledgements of one cursor, the bytes that it stores, and the cursor that these bytes make. */
final class AckSubject implements Driver.Subject {
    private static final Map<Long, Long> LOG = Map.of(3L, 12L, 4L, 10L, 5L, 30L);

    /** Ranges and batches in the order of positions, as both sides print them. */
    private static final class Shown {
        private final StringBuilder ranges = new StringBuilder();
        private final NavigableMap<Position, BitSet> batches = new TreeMap<>();

        void range(long ledger, long before, long last) {
            ranges.append(' ').append(ledger).append(':').append(before + 1).append('-').append(last);
        }

        String text(Position mark) {
            StringBuilder all = new StringBuilder().append(mark.getLedgerId()).append(':')
                    .append(mark.getEntryId()).append(ranges);
            batches.forEach((position, left) -> {
                all.append(" | ").append(position.getLedgerId()).append(':').append(position.getEntryId());
                for (int i = 0; i < size(position.getEntryId()); i++) {
                    if (!left.get(i)) {
                        all.append(' ').append(i);
                    }
                }
            });
            return all.toString();
        }
    }

    private static final AckCursor.Allocator ALLOCATOR = new AckCursor.Allocator() {
        @Override
        public Object allocate(Class<?> type) throws Exception {
            return ManagerSubject.allocate(type);
        }

        @Override
        public void set(Object object, String name, Object value) throws Exception {
            ManagerSubject.set(object, name, value);
        }

        /** 5.0.1 keeps a logger in each object, and counts and logs what it leaves out. */
        @Override
        public void complete(ManagedCursorImpl cursor, ManagedLedgerImpl ledger) throws Exception {
            try {
                set(cursor, "lastCursorDataFullyPersistable", new AtomicBoolean());
                set(cursor, "lastBatchDeletedIndexFullyPersistable", new AtomicBoolean());
                Class<?> type = Class.forName("io.github.merlimat.slog.Logger");
                Object logger = type.getMethod("get", Class.class).invoke(null, AckSubject.class);
                set(cursor, "log", logger);
                set(ledger, "log", logger);
                ManagedLedgerFactoryImpl factory = ManagerSubject.allocate(ManagedLedgerFactoryImpl.class);
                Class<?> stats = Class.forName("org.apache.bookkeeper.mledger.impl.OpenTelemetryManagedCursorStats");
                set(ledger, "factory", factory);
                for (Constructor<?> each : stats.getDeclaredConstructors()) {
                    set(factory, "openTelemetryManagedCursorStats", each.newInstance(OpenTelemetry.noop(), factory));
                }
            } catch (NoSuchFieldException older) {
                // 4.2.4 has none of these.
            }
        }
    };

    private final ManagedLedgerConfig config = new ManagedLedgerConfig();
    private final Position start;
    private AckCursor cursor;

    AckSubject(String[] words) throws Exception {
        config.setMaxUnackedRangesToPersist(Integer.parseInt(words[3]));
        config.setMaxBatchDeletedIndexToPersist(Integer.parseInt(words[4]));
        config.setPersistIndividualAckAsLongArray(words[5].equals("1"));
        config.setDeletionAtBatchIndexLevelEnabled(true);
        config.setThrottleMarkDelete(0);
        start = PositionFactory.create(Long.parseLong(words[2]), -1);
        cursor = at(start);
    }

    private AckCursor at(Position mark) throws Exception {
        Map<Long, Long> log = new TreeMap<>(LOG);
        log.keySet().removeIf(ledger -> ledger < start.getLedgerId());
        return AckCursor.at(mark, log, config, ALLOCATOR);
    }

    /** The messages of an entry that is a batch. */
    private static int size(long entry) {
        return new int[] {2, 5, 70}[(int) (entry % 3)];
    }

    private String state() throws Exception {
        Shown shown = new Shown();
        cursor.ranges((ledger, before, upper, last) -> {
            shown.range(ledger, before, last);
            return true;
        });
        shown.batches.putAll(cursor.batches());
        return shown.text(cursor.getMarkDeletedPosition());
    }

    private PositionInfo stored() throws Exception {
        PositionInfo info = new PositionInfo();
        info.parseFrom(cursor.stored(ManagerSubject.allocate(CursorLedger.class)));
        return info;
    }

    private static String text(PositionInfo info) {
        Shown shown = new Shown();
        for (int i = 0; i < info.getIndividualDeletedMessagesCount(); i++) {
            MessageRange range = info.getIndividualDeletedMessageAt(i);
            shown.range(range.getUpperEndpoint().getLedgerId(), range.getLowerEndpoint().getEntryId(),
                    range.getUpperEndpoint().getEntryId());
        }
        NavigableMap<Long, BitSet> ledgers = new TreeMap<>();
        for (int i = 0; i < info.getIndividualDeletedMessageRangesCount(); i++) {
            LongListMap words = info.getIndividualDeletedMessageRangeAt(i);
            long[] values = new long[words.getValuesCount()];
            for (int word = 0; word < values.length; word++) {
                values[word] = words.getValueAt(word);
            }
            ledgers.put(words.getKey(), BitSet.valueOf(values));
        }
        ledgers.forEach((ledger, bits) -> {
            for (int first = bits.nextSetBit(0); first >= 0; first = bits.nextSetBit(bits.nextClearBit(first))) {
                shown.range(ledger, first - 1, bits.nextClearBit(first) - 1);
            }
        });
        for (int i = 0; i < info.getBatchedEntryDeletionIndexInfosCount(); i++) {
            BatchedEntryDeletionIndexInfo batch = info.getBatchedEntryDeletionIndexInfoAt(i);
            long[] values = new long[batch.getDeleteSetsCount()];
            for (int word = 0; word < values.length; word++) {
                values[word] = batch.getDeleteSetAt(word);
            }
            shown.batches.put(PositionFactory.create(
                    batch.getPosition().getLedgerId(), batch.getPosition().getEntryId()), BitSet.valueOf(values));
        }
        return shown.text(PositionFactory.create(info.getLedgerId(), info.getEntryId()));
    }

    @Override
    public String call(String[] words) throws Exception {
        long[] n = new long[words.length];
        for (int i = 1; i < words.length; i++) {
            n[i] = Long.parseLong(words[i]);
        }
        switch (words[0]) {
            case "ack":
                return cursor.acknowledge(PositionFactory.create(n[1], n[2])) + " " + state();
            case "index": {
                BitSet left = new BitSet();
                left.set(0, size(n[2]));
                left.clear((int) n[3]);
                return cursor.acknowledge(AckSetStateUtil.createPositionWithAckSet(n[1], n[2], left.toLongArray()))
                        + " " + state();
            }
            case "mark":
                return cursor.acknowledgeUpTo(PositionFactory.create(n[1], n[2])) + " " + state();
            case "fits":
                return Boolean.toString(cursor.isCursorDataFullyPersistable());
            case "store":
                return text(stored());
            case "restart": {
                PositionInfo info = stored();
                cursor = at(PositionFactory.create(info.getLedgerId(), info.getEntryId()));
                cursor.recover(info);
                return state();
            }
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }
}
