// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package weft;

import io.etcd.jetcd.ByteSequence;
import io.etcd.jetcd.Client;
import io.etcd.jetcd.KV;
import io.etcd.jetcd.KeyValue;
import io.etcd.jetcd.op.Op;
import io.etcd.jetcd.options.DeleteOption;
import io.etcd.jetcd.options.GetOption;
import io.etcd.jetcd.options.PutOption;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.Vector;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import site.ycsb.ByteArrayByteIterator;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.Status;

/**
 * Keeps YCSB's records in etcd: each field is a key RECORD/FIELD, so an update writes the fields
 * that change, an insert is one transaction, and a record is read by one range. Reads are
 * linearizable. The threads share one client for each member.
 */
public final class EtcdBinding extends DB {
  private static final AtomicInteger NEXT = new AtomicInteger();
  private static final Map<String, Client> CLIENTS = new ConcurrentHashMap<>();
  private static final int LARGEST = 64 << 20; // bytes of an answer: scans of large records
  private static final AtomicInteger USERS = new AtomicInteger();

  private KV etcd;
  private int fieldCount;

  @Override
  public void init() {
    String[] addresses = getProperties().getProperty("addresses", "").split(",");
    String address = addresses[NEXT.getAndIncrement() % addresses.length];
    USERS.incrementAndGet();
    etcd = CLIENTS.computeIfAbsent(address, a -> Client.builder().endpoints("http://" + a).maxInboundMessageSize(LARGEST).build()).getKVClient();
    fieldCount = Integer.parseInt(getProperties().getProperty("fieldcount", "10"));
  }

  @Override
  public void cleanup() {
    if (USERS.decrementAndGet() == 0) {
      CLIENTS.values().forEach(Client::close);
    }
  }

  private static ByteSequence bytes(String text) {
    return ByteSequence.from(text, StandardCharsets.UTF_8);
  }

  private interface Call {
    Status run() throws ExecutionException, InterruptedException, TimeoutException;
  }

  /** Runs a call; what the client throws is a failed operation. */
  private static Status counted(Call call) {
    try {
      return call.run();
    } catch (ExecutionException | TimeoutException e) {
      System.err.println("etcd: " + e.getMessage());
      return Status.ERROR;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return Status.ERROR;
    }
  }

  private static <T> T wait(CompletableFuture<T> call) throws ExecutionException, InterruptedException, TimeoutException {
    return call.get(60, TimeUnit.SECONDS);
  }

  /** Returns the first key behind all fields of a record: 0 follows / in ASCII. */
  private static ByteSequence behind(String record) {
    return bytes(record + "0");
  }

  @Override
  public Status read(String table, String key, Set<String> fields, Map<String, ByteIterator> result) {
    return counted(() -> {
      for (KeyValue kv : wait(etcd.get(bytes(key + "/"), GetOption.builder().withRange(behind(key)).build())).getKvs()) {
        String field = kv.getKey().toString(StandardCharsets.UTF_8).substring(key.length() + 1);
        if (fields == null || fields.contains(field)) {
          result.put(field, new ByteArrayByteIterator(kv.getValue().getBytes()));
        }
      }
      return result.isEmpty() ? Status.NOT_FOUND : Status.OK;
    });
  }

  @Override
  public Status update(String table, String key, Map<String, ByteIterator> values) {
    return counted(() -> {
      List<Op> puts = new ArrayList<>();
      for (Map.Entry<String, ByteIterator> e : values.entrySet()) {
        puts.add(Op.put(bytes(key + "/" + e.getKey()), ByteSequence.from(e.getValue().toArray()), PutOption.DEFAULT));
      }
      return wait(etcd.txn().Then(puts.toArray(new Op[0])).commit()).isSucceeded() ? Status.OK : Status.ERROR;
    });
  }

  @Override
  public Status insert(String table, String key, Map<String, ByteIterator> values) {
    return update(table, key, values);
  }

  @Override
  public Status delete(String table, String key) {
    return counted(() -> {
      wait(etcd.delete(bytes(key + "/"), DeleteOption.builder().withRange(behind(key)).build()));
      return Status.OK;
    });
  }

  @Override
  public Status scan(String table, String start, int count, Set<String> fields, Vector<HashMap<String, ByteIterator>> result) {
    return counted(() -> {
      GetOption some = GetOption.builder().withRange(bytes("\u007f")).withLimit((long) count * fieldCount).build();
      String last = null;
      HashMap<String, ByteIterator> record = null;
      for (KeyValue kv : wait(etcd.get(bytes(start + "/"), some)).getKvs()) {
        String name = kv.getKey().toString(StandardCharsets.UTF_8);
        int cut = name.indexOf('/');
        if (!name.substring(0, cut).equals(last)) {
          last = name.substring(0, cut);
          record = new HashMap<>();
          result.add(record);
        }
        if (fields == null || fields.contains(name.substring(cut + 1))) {
          record.put(name.substring(cut + 1), new ByteArrayByteIterator(kv.getValue().getBytes()));
        }
      }
      return Status.OK;
    });
  }
}
