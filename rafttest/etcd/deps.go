// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build deps

package main

// The driver does not import the packages that the driver builds and runs. These imports make
// go.mod and go.sum complete for them.
import (
	_ "go.etcd.io/etcd/etcdutl/v3/snapshot"
	_ "go.etcd.io/etcd/server/v3/etcdmain"
	_ "go.etcd.io/etcd/tests/v3/framework/integration"
	_ "go.etcd.io/raft/v3"

	_ "github.com/weftraft/weft/raft"
)
