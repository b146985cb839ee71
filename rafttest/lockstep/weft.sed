s/^\/\/ upstream is upstream's library\. The other adapter is made from this file:$/\/\/ weft is Weft's library. This file is made from side_upstream.go: see the/
s/^\/\/ see the go:generate line of side\.go\.$/\/\/ go:generate line of side.go./
s/^\/\/ Copyright 2026 The Weft Authors$/\/\/ Code generated from side_upstream.go; DO NOT EDIT.\n\n&/
s/raft "go.etcd.io\/raft\/v3"$/"github.com\/weftraft\/weft\/raft"/
s/upstream knows/upstream knows/;t
s/fromUpstream/fromWeft/g
s/toUpstream/toWeft/g
s/upstream/weft/g
