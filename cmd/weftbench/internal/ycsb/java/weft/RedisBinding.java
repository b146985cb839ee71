// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package weft;

import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.Vector;
import java.util.concurrent.atomic.AtomicInteger;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.exceptions.JedisException;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.DBException;
import site.ycsb.Status;
import site.ycsb.StringByteIterator;

/**
 * Keeps YCSB's records in Redis, in the layout that YCSB documents for Redis: a record is a hash
 * of its fields, and one sorted set has all keys, so that scans find them. Each client thread has
 * a connection, to one of the addresses in turn.
 */
public final class RedisBinding extends DB {
  private static final String INDEX = "_indices";
  private static final AtomicInteger NEXT = new AtomicInteger();

  private Jedis redis;

  @Override
  public void init() throws DBException {
    String[] addresses = getProperties().getProperty("addresses", "").split(",");
    HostAndPort at = HostAndPort.parseString(addresses[NEXT.getAndIncrement() % addresses.length]);
    redis = new Jedis(at.getHost(), at.getPort(), 60_000);
    redis.connect();
  }

  @Override
  public void cleanup() {
    redis.close();
  }

  private interface Call {
    Status run();
  }

  /** Runs a call; what the client throws is a failed operation. */
  private Status counted(Call call) {
    try {
      return call.run();
    } catch (JedisException e) {
      System.err.println("redis: " + e.getMessage());
      return Status.ERROR;
    }
  }

  private static double score(String key) {
    return key.hashCode();
  }

  @Override
  public Status read(String table, String key, Set<String> fields, Map<String, ByteIterator> result) {
    return counted(() -> {
      if (fields == null) {
        StringByteIterator.putAllAsByteIterators(result, redis.hgetAll(key));
        return result.isEmpty() ? Status.NOT_FOUND : Status.OK;
      }
      String[] names = fields.toArray(new String[0]);
      int at = 0;
      for (String value : redis.hmget(key, names)) {
        if (value == null) {
          return Status.NOT_FOUND;
        }
        result.put(names[at++], new StringByteIterator(value));
      }
      return Status.OK;
    });
  }

  @Override
  public Status update(String table, String key, Map<String, ByteIterator> values) {
    return counted(() -> redis.hmset(key, StringByteIterator.getStringMap(values)).equals("OK") ? Status.OK : Status.ERROR);
  }

  @Override
  public Status insert(String table, String key, Map<String, ByteIterator> values) {
    Status done = update(table, key, values);
    if (!done.isOk()) {
      return done;
    }
    return counted(() -> {
      redis.zadd(INDEX, score(key), key);
      return Status.OK;
    });
  }

  @Override
  public Status delete(String table, String key) {
    return counted(() -> {
      long gone = redis.del(key) + redis.zrem(INDEX, key);
      return gone == 2 ? Status.OK : Status.NOT_FOUND;
    });
  }

  @Override
  public Status scan(String table, String start, int count, Set<String> fields, Vector<HashMap<String, ByteIterator>> result) {
    return counted(() -> {
      for (String key : redis.zrangeByScore(INDEX, score(start), Double.POSITIVE_INFINITY, 0, count)) {
        HashMap<String, ByteIterator> record = new HashMap<>();
        Status one = read(table, key, fields, record);
        if (!one.isOk()) {
          return one;
        }
        result.add(record);
      }
      return Status.OK;
    });
  }
}
