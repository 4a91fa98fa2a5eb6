package org.apache.bookkeeper.mledger.impl.cache;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.opentelemetry.api.OpenTelemetry;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.concurrent.ScheduledExecutorService;
import org.apache.bookkeeper.mledger.ManagedLedgerFactoryConfig;
import org.apache.bookkeeper.mledger.Position;
import org.apache.bookkeeper.mledger.PositionFactory;
import org.apache.bookkeeper.mledger.ReferenceCountedEntry;
import org.apache.bookkeeper.mledger.impl.EntryImpl;
import org.apache.bookkeeper.mledger.impl.ManagedLedgerFactoryImpl;
import org.apache.bookkeeper.mledger.impl.ManagedLedgerFactoryMBeanImpl;
import org.apache.bookkeeper.mledger.impl.ManagedLedgerImpl;

/**
 * The entry cache manager over the caches of three managed ledgers. Its executor runs a task in the thread that hands
 * it over, so an insertion which makes the caches too large evicts before it returns.
 *
 * <p>Time goes on by a tick an operation; a tick is so long that the time which passes meanwhile does not matter.
 */
final class ManagerSubject implements Driver.Subject {
    private static final long TICK = 4_000_000_000L;
    private static final String[] NAMES = {"a", "b", "c"};

    private final ManagedLedgerFactoryImpl factory;
    private final RangeEntryCacheManagerImpl manager;
    private final ManagedLedgerFactoryMBeanImpl mbean;
    private final ManagedLedgerImpl[] ledgers = new ManagedLedgerImpl[NAMES.length];
    private final EntryCache[] caches = new EntryCache[NAMES.length];
    private final long life;
    /** Whether smaller sizes trigger an eviction. */
    private final boolean triggers;

    ManagerSubject(String[] words) throws Exception {
        ManagedLedgerFactoryConfig config = new ManagedLedgerFactoryConfig();
        config.setMaxCacheSize(Long.parseLong(words[2]));
        config.setCacheEvictionWatermark(Integer.parseInt(words[3]) / 100.0);
        config.setCacheEvictionExtendTTLOfEntriesWithRemainingExpectedReadsMaxTimes(Integer.parseInt(words[4]));
        config.setCacheEvictionExtendTTLOfRecentlyAccessed(words[5].equals("1"));
        config.setManagedLedgerMaxReadsInFlightSize(0);
        life = Long.parseLong(words[6]);
        triggers = words[7].equals("1");
        factory = allocate(ManagedLedgerFactoryImpl.class);
        set(factory, "config", config);
        mbean = new ManagedLedgerFactoryMBeanImpl(factory);
        set(factory, "mbean", mbean);
        set(factory, "cacheEvictionExecutor", Proxy.newProxyInstance(
                ManagerSubject.class.getClassLoader(), new Class<?>[] {ScheduledExecutorService.class},
                (proxy, method, arguments) -> {
                    if (method.getName().equals("execute")) {
                        ((Runnable) arguments[0]).run();
                    }
                    return null;
                }));
        manager = new RangeEntryCacheManagerImpl(factory, null, OpenTelemetry.noop());
        for (int i = 0; i < NAMES.length; i++) {
            ledgers[i] = ledger(NAMES[i]);
            caches[i] = manager.getEntryCache(ledgers[i]);
        }
    }

    /** An object whose constructor did not run. */
    static <T> T allocate(Class<T> type) throws Exception {
        Class<?> unsafe = Class.forName("sun.misc.Unsafe");
        Field field = unsafe.getDeclaredField("theUnsafe");
        field.setAccessible(true);
        Method method = unsafe.getMethod("allocateInstance", Class.class);
        return type.cast(method.invoke(field.get(null), type));
    }

    /** Sets a field of an object or of what its class extends. */
    static void set(Object object, String name, Object value) throws Exception {
        for (Class<?> type = object.getClass(); type != null; type = type.getSuperclass()) {
            for (Field field : type.getDeclaredFields()) {
                if (field.getName().equals(name)) {
                    field.setAccessible(true);
                    field.set(object, value);
                    return;
                }
            }
        }
        throw new NoSuchFieldException(name);
    }

    static ManagedLedgerImpl ledger(String name) throws Exception {
        ManagedLedgerImpl ledger = allocate(ManagedLedgerImpl.class);
        set(ledger, "name", name);
        return ledger;
    }

    private RangeCache entries(int cache) throws Exception {
        return (RangeCache) Driver.field(RangeEntryCacheImpl.class, caches[cache], "entries");
    }

    /** Gives what was put or kept by this operation the time of the trace. */
    private void putBackTime(long now) {
        manager.forEachEntry(wrapper -> {
            if (wrapper.timestampNanos > Driver.REAL) {
                wrapper.timestampNanos = now * TICK;
            }
        });
    }

    private String apply(String[] words, long[] n) throws Exception {
        int cache = (int) n[1];
        Position key = words.length > 3 ? PositionFactory.create(n[2], n[3]) : null;
        switch (words[0]) {
            case "put": {
                ByteBuf data = Unpooled.wrappedBuffer(new byte[(int) n[4]]);
                EntryImpl entry = EntryImpl.create(key, data, (int) n[5]);
                data.release();
                entry.setDecreaseReadCountOnRelease(false);
                boolean inserted = caches[cache].insert(entry);
                entry.release();
                return Boolean.toString(inserted);
            }
            case "read": {
                ReferenceCountedEntry entry = entries(cache).get(key);
                if (entry == null) {
                    return "miss";
                }
                EntryImpl copy = EntryImpl.create(entry);
                copy.release();
                String answer = "hit " + entry.getLength();
                entry.release();
                return answer;
            }
            case "invalidate":
                caches[cache].invalidateEntries(key);
                return "done";
            case "ledger":
                caches[cache].invalidateAllEntries(n[2]);
                return "done";
            case "clear":
                caches[cache].clear();
                return "done";
            case "remove":
                manager.removeEntryCache(NAMES[cache]);
                caches[cache] = manager.getEntryCache(ledgers[cache]);
                return "done";
            case "tick":
                // The time pass is for what is older than `life` ticks and a half.
                set(factory, "cacheEvictionTimeThresholdNanos",
                        System.nanoTime() - ((n[n.length - 1] - life) * TICK - TICK / 2));
                manager.doCacheEviction();
                return "done";
            case "resize":
                manager.updateCacheSizeAndThreshold(n[1]);
                manager.updateCacheEvictionWatermark(n[2] / 100.0);
                if (triggers) {
                    manager.triggerEvictionWhenNeeded();
                }
                return "done";
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    @Override
    public String call(String[] words) throws Exception {
        long[] n = new long[words.length];
        for (int i = 1; i < words.length; i++) {
            n[i] = Long.parseLong(words[i]);
        }
        String answer = apply(words, n);
        putBackTime(n[n.length - 1]);
        StringBuilder sizes = new StringBuilder(answer).append(' ').append(manager.getSize());
        for (EntryCache cache : caches) {
            sizes.append(' ').append(cache.getSize());
        }
        return sizes.append(' ').append(mbean.getCacheInsertedEntriesCount())
                .append(' ').append(mbean.getCacheEvictedEntriesCount())
                .append(' ').append(mbean.getNumberOfCacheEvictionsTotal()).toString();
    }
}
