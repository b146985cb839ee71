// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package cache is empty. The package stands in for etcd's client-side cache, a module that
// go.etcd.io/etcd/tests/v3 requires and that module proxies do not serve. The only file that uses
// the cache, a test of the cache, is left out of the run.
package cache
