// An empty module, which go.work puts in the place of the real one.
module google.golang.org/genproto

go 1.26.0
