// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package kvpb is the gRPC service of kvdemo, generated from kv.proto.
//
// The generated files are committed: building needs no protocol compiler. To
// generate them again, put protoc, protoc-gen-go v1.36 and protoc-gen-go-grpc
// v1.6 in the PATH (pip's grpcio-tools has protoc as python -m
// grpc_tools.protoc) and run go generate. The file's name has a folder in it, because
// a program may hold one file of a name only, and etcd has a kv.proto.
package kvpb

//go:generate protoc -I .. --go_out=.. --go_opt=paths=source_relative --go-grpc_out=.. --go-grpc_opt=paths=source_relative kvpb/kv.proto
