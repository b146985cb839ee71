module go.etcd.io/etcd/cache/v3

go 1.26.0
