s/^\/\/ Copyright 2026 The Weft Authors$/\/\/ Code generated from weft_test.go; DO NOT EDIT.\n\n&/;t
s,github.com/weftraft/weft/raft,go.etcd.io/raft/v3,
s/weft/upstream/g
s/Weft/Upstream/g
