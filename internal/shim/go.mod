module github.com/weftraft/weft/internal/shim

go 1.26.0

require (
	github.com/stretchr/testify v1.12.1
	github.com/weftraft/weft v0.1.0
	golang.org/x/mod v0.42.0
)

require (
	github.com/klauspost/cpuid/v2 v2.3.0 // indirect
	github.com/klauspost/reedsolomon v1.14.2 // indirect
	go.etcd.io/raft/v3 v3.7.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.30.0 // indirect
	google.golang.org/protobuf v1.36.11 // indirect
)
