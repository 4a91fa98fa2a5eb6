package org.apache.pulsar.common.util.collections;

import java.util.BitSet;
import java.util.function.LongConsumer;

/**
 * Stands in for the bitmap of pulsar-common 5.0.1, which Maven does not find: a set of numbers from 0 on. It holds them
 * in a BitSet, so its sizes in bytes are not those of the release.
 */
public interface LongBitmap {
    boolean checkedAdd(long value);

    void add(long value);

    /** Adds the numbers from {@code first} on, without {@code end}. */
    void add(long first, long end);

    /** Removes the numbers from {@code first} on, without {@code end}; true if one was there. */
    boolean remove(long first, long end);

    boolean contains(long value);

    boolean isEmpty();

    void clear();

    long cardinality();

    /** The number of members below a value. */
    long rank(long value);

    /** The first member from a value on, or -1. */
    long nextPresentValue(long value);

    long nextAbsentValue(long value);

    /** The last number up to a value that is no member, or -1. */
    long previousAbsentValue(long value);

    /** The last member, or -1. */
    long lastPresentValue();

    /** Removes up to {@code most} members, the lowest first, and gives them to a consumer; how many. */
    long drainTo(long most, LongConsumer consumer);

    long serializedSize();

    long[] serializeToLongArray();

    /** The one class behind the interface. */
    final class Bits implements LongBitmap {
        private final BitSet bits;

        Bits(BitSet bits) {
            this.bits = bits;
        }

        @Override
        public boolean checkedAdd(long value) {
            boolean added = !bits.get((int) value);
            bits.set((int) value);
            return added;
        }

        @Override
        public void add(long value) {
            bits.set((int) value);
        }

        @Override
        public void add(long first, long end) {
            bits.set((int) first, (int) end);
        }

        @Override
        public boolean remove(long first, long end) {
            int next = bits.nextSetBit((int) first);
            bits.clear((int) first, (int) end);
            return next >= 0 && next < end;
        }

        @Override
        public boolean contains(long value) {
            return value >= 0 && bits.get((int) value);
        }

        @Override
        public boolean isEmpty() {
            return bits.isEmpty();
        }

        @Override
        public void clear() {
            bits.clear();
        }

        @Override
        public long cardinality() {
            return bits.cardinality();
        }

        @Override
        public long rank(long value) {
            return value <= 0 ? 0 : bits.get(0, (int) value).cardinality();
        }

        @Override
        public long nextPresentValue(long value) {
            return bits.nextSetBit((int) value);
        }

        @Override
        public long nextAbsentValue(long value) {
            return bits.nextClearBit((int) value);
        }

        @Override
        public long previousAbsentValue(long value) {
            return bits.previousClearBit((int) value);
        }

        @Override
        public long lastPresentValue() {
            return bits.length() - 1L;
        }

        @Override
        public long drainTo(long most, LongConsumer consumer) {
            long drained = 0;
            for (int at = bits.nextSetBit(0); at >= 0 && drained < most; at = bits.nextSetBit(at + 1)) {
                consumer.accept(at);
                bits.clear(at);
                drained++;
            }
            return drained;
        }

        @Override
        public long serializedSize() {
            return bits.toByteArray().length;
        }

        @Override
        public long[] serializeToLongArray() {
            return bits.toLongArray();
        }
    }
}
