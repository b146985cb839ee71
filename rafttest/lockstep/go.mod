module github.com/weftraft/weft/rafttest/lockstep

go 1.26.0

require (
	github.com/weftraft/weft v0.0.0
	go.etcd.io/raft/v3 v3.7.0
	google.golang.org/protobuf v1.36.12
)

replace github.com/weftraft/weft => ../..
