// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package cache is empty. It stands in for etcd's client-side cache, a module
// that go.etcd.io/etcd/tests/v3 requires and that module proxies do not serve.
// The one file that uses it, a test of that cache, is left out of the run.
package cache
