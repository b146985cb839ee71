// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build deps

package main

// What is built and run here is not imported by the driver. These imports make
// go.mod and go.sum complete for it.
import (
	_ "go.etcd.io/etcd/etcdutl/v3/snapshot"
	_ "go.etcd.io/etcd/server/v3/etcdmain"
	_ "go.etcd.io/etcd/tests/v3/framework/integration"
	_ "go.etcd.io/raft/v3"

	_ "github.com/weftraft/weft/raft"
)
