package org.apache.bookkeeper.mledger.impl.cache;

import io.opentelemetry.api.OpenTelemetry;
import io.opentelemetry.api.common.Attributes;
import io.prometheus.client.Collector;
import io.prometheus.client.CollectorRegistry;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Proxy;
import java.lang.reflect.Type;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import org.apache.bookkeeper.mledger.OpenTelemetryManagedLedgerCacheStats;
import org.apache.bookkeeper.mledger.impl.ManagedLedgerFactoryImpl;

/**
 * Prints the metrics that the classes of a released managed-ledger jar register: a line for each, with its type, unit
 * and the attributes of its values.
 */
public final class Metrics {
    /** The attributes of the values by the instrument's line. */
    private static final Map<String, TreeSet<String>> FOUND = new TreeMap<>();
    private static final List<Runnable> CALLBACKS = new ArrayList<>();

    /** A builder or an instrument of the API that writes down what it was called with. */
    private static Object recorder(Class<?> type, String name, String kind, String[] unit) {
        return Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, (proxy, method, arguments) -> {
            String called = method.getName();
            Class<?> result = method.getReturnType();
            if (called.equals("setUnit")) {
                unit[0] = (String) arguments[0];
                return proxy;
            }
            if (called.equals("record")) {
                TreeSet<String> values = FOUND.get("otel " + name + " " + kind + " " + unit[0]);
                Attributes attributes = arguments.length > 1 ? (Attributes) arguments[1] : Attributes.empty();
                values.add(attributes.asMap().toString());
                return null;
            }
            if (called.equals("batchCallback")) {
                CALLBACKS.add((Runnable) arguments[0]);
                return recorder(result, name, kind, unit);
            }
            if (called.endsWith("Builder") && arguments != null && arguments.length == 1) {
                return recorder(result, (String) arguments[0], called, new String[1]);
            }
            if (called.startsWith("build") && name != null) {
                FOUND.put("otel " + name + " " + kind + " " + unit[0], new TreeSet<>());
                if (arguments != null && arguments.length == 1 && arguments[0] instanceof Consumer<?> callback) {
                    Type measurement = ((ParameterizedType) method.getGenericParameterTypes()[0])
                            .getActualTypeArguments()[0];
                    Object observer = recorder((Class<?>) measurement, name, kind, unit);
                    CALLBACKS.add(() -> accept(callback, observer));
                }
                return result.isInterface() ? recorder(result, name, kind, unit) : null;
            }
            if (called.equals("toString")) {
                return "recorder";
            }
            if (result == type) {
                return proxy;
            }
            return result.isInterface() ? recorder(result, name, kind, unit) : null;
        });
    }

    @SuppressWarnings("unchecked")
    private static void accept(Consumer<?> callback, Object observer) {
        ((Consumer<Object>) callback).accept(observer);
    }

    private static void set(Object object, String name, Object value) throws Exception {
        Field field = ManagedLedgerFactoryImpl.class.getDeclaredField(name);
        field.setAccessible(true);
        field.set(object, value);
    }

    /** A factory without ledgers, made without its constructor. */
    private static ManagedLedgerFactoryImpl factory() throws Exception {
        Field unsafe = Class.forName("sun.misc.Unsafe").getDeclaredField("theUnsafe");
        unsafe.setAccessible(true);
        Method allocate = unsafe.getType().getMethod("allocateInstance", Class.class);
        Object made = allocate.invoke(unsafe.get(null), ManagedLedgerFactoryImpl.class);
        ManagedLedgerFactoryImpl factory = (ManagedLedgerFactoryImpl) made;
        set(factory, "ledgers", new ConcurrentHashMap<String, CompletableFuture<?>>());
        set(factory, "entryCacheManager", Proxy.newProxyInstance(Metrics.class.getClassLoader(),
                new Class<?>[] {EntryCacheManager.class}, (proxy, method, arguments) -> 0L));
        Class<?> type = Class.forName("org.apache.bookkeeper.mledger.impl.ManagedLedgerFactoryMBeanImpl");
        Constructor<?> beans = type.getDeclaredConstructors()[0];
        beans.setAccessible(true);
        set(factory, "mbean", beans.newInstance(factory));
        return factory;
    }

    public static void main(String[] arguments) throws Exception {
        OpenTelemetry recorder = (OpenTelemetry) recorder(OpenTelemetry.class, null, null, new String[1]);
        new OpenTelemetryManagedLedgerCacheStats(recorder, factory());
        Constructor<?> limiter = InflightReadsLimiter.class.getConstructors()[0];
        limiter.newInstance(1000L, 10, 1000L, null, recorder);
        Class.forName(PendingReadsManager.class.getName());
        for (Runnable callback : CALLBACKS) {
            try {
                callback.run();
            } catch (NoClassDefFoundError missing) {
                // A library of another release: what was recorded before stays.
                System.err.println(missing);
            }
        }
        for (Map.Entry<String, TreeSet<String>> each : FOUND.entrySet()) {
            System.out.println(each.getKey() + " " + String.join(";", each.getValue()));
        }
        for (Collector.MetricFamilySamples family
                : Collections.list(CollectorRegistry.defaultRegistry.metricFamilySamples())) {
            TreeSet<String> labels = new TreeSet<>();
            for (Collector.MetricFamilySamples.Sample sample : family.samples) {
                labels.addAll(sample.labelNames);
            }
            System.out.println("prometheus " + family.name + " " + family.type + " " + labels);
        }
    }
}
