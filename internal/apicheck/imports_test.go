// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package apicheck

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/docs"
)

// purity says what a package of pure state machines may do besides computing.
type purity struct {
	imports    []string            // beyond the standard library's harmless ones
	fileMayUse map[string][]string // per file: imports that others may not have
	goroutines []string            // files that may start goroutines
}

// pure lists the packages into which time, randomness and I/O come as values.
// Those that do not exist yet are held to it from their first file on.
var pure = map[string]purity{
	"raft": {
		imports: []string{"go.etcd.io/raft/v3/", "google.golang.org/protobuf/",
			"github.com/weftraft/weft/ecraft", "github.com/weftraft/weft/internal/encoded", "github.com/weftraft/weft/internal/placement", "github.com/weftraft/weft/leases", "github.com/weftraft/weft/raft/internal/"},
		// The default logger writes to standard error; Fatal ends the process.
		fileMayUse: map[string][]string{"logger.go": {"os", "log"}, "random.go": {"crypto/rand"}},
		goroutines: []string{"node.go"},
	},
	"ecraft":             {imports: []string{"github.com/klauspost/reedsolomon"}},
	"ecraft/adaptive":    {imports: []string{"github.com/weftraft/weft/ecraft"}},
	"ecraft/papers":      {imports: []string{"github.com/weftraft/weft/ecraft"}},
	"gossip":             {imports: []string{"github.com/weftraft/weft/ecraft"}},
	"leases":             {},
	"internal/encoded":   {imports: []string{"go.etcd.io/raft/v3/", "google.golang.org/protobuf/"}},
	"internal/placement": {},
}

// impure are packages that reach outside: of the standard library, and our own clock.
var impure = []string{"github.com/weftraft/weft/leases/clock", "net", "os", "io/ioutil", "syscall", "log", "math/rand", "math/rand/v2", "crypto/rand", "plugin", "testing"}

// clocks are the names in package time that read or follow the wall clock.
var clocks = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

func TestPurePackages(t *testing.T) {
	root, err := docs.Root()
	require.NoError(t, err)
	checked := 0
	for dir, rules := range pure {
		for _, file := range sourcesOf(t, filepath.Join(root, dir)) {
			checked++
			src, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, complaint := range rules.complaints(t, filepath.Base(file), src) {
				t.Errorf("%s/%s: %s", dir, filepath.Base(file), complaint)
			}
		}
	}
	require.Greater(t, checked, 20, "package raft alone has more files")
}

// sourcesOf lists the non-test files of a package, whatever their build tags.
func sourcesOf(t *testing.T, dir string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	return slices.DeleteFunc(all, func(f string) bool { return strings.HasSuffix(f, "_test.go") })
}

// complaints lists what a file does that a pure package must not do.
func (p purity) complaints(t *testing.T, name string, src []byte) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), name, src, 0)
	require.NoError(t, err)
	var list []string
	timeName := ""
	for _, spec := range f.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		require.NoError(t, err)
		if path == "time" {
			timeName = "time"
			if spec.Name != nil {
				timeName = spec.Name.Name
			}
		}
		if !slices.Contains(p.fileMayUse[name], path) && !p.allows(path) {
			list = append(list, "imports "+path)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			if !slices.Contains(p.goroutines, name) {
				list = append(list, "starts a goroutine")
			}
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && timeName != "" && x.Name == timeName && slices.Contains(clocks, n.Sel.Name) {
				list = append(list, fmt.Sprintf("uses time.%s", n.Sel.Name))
			}
		}
		return true
	})
	return list
}

func (p purity) allows(path string) bool {
	if slices.ContainsFunc(impure, func(bad string) bool { return path == bad || strings.HasPrefix(path, bad+"/") }) {
		return false
	}
	for _, prefix := range p.imports {
		if strings.HasPrefix(path, prefix) {
			return true
		}
	}
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".") // the standard library
}

// TestPurityIsSeen breaks each rule once.
func TestPurityIsSeen(t *testing.T) {
	rules := pure["raft"]
	for want, body := range map[string]string{
		"imports net/http":                              `import _ "net/http"`,
		"imports os":                                    `import _ "os"`,
		"imports math/rand/v2":                          `import _ "math/rand/v2"`,
		"imports crypto/rand":                           `import _ "crypto/rand"`,
		"imports go.etcd.io/raft/v3":                    `import _ "go.etcd.io/raft/v3"`,
		"imports github.com/x/y":                        `import _ "github.com/x/y"`,
		"imports github.com/weftraft/weft/leases/clock": `import _ "github.com/weftraft/weft/leases/clock"`,
		"uses time.Now":                                 "import \"time\"\nvar now = time.Now",
		"uses time.NewTimer":                            "import clock \"time\"\nvar t = clock.NewTimer(1)",
		"starts a goroutine":                            "func f() { go f() }",
	} {
		require.Equal(t, []string{want}, rules.complaints(t, "step.go", []byte("package raft\n"+body)))
	}
	allowed := "package raft\nimport (\n_ \"os\"\n_ \"time\"\n_ \"go.etcd.io/raft/v3/raftpb\"\n)\n"
	require.Empty(t, rules.complaints(t, "logger.go", []byte(allowed)))
	require.Empty(t, rules.complaints(t, "node.go", []byte("package raft\nfunc f() { go f() }")))
}

// The build constraints of the pure packages must not hide files from go/build
// on some system: they are the same everywhere.
func TestPurePackagesAreSystemIndependent(t *testing.T) {
	root, err := docs.Root()
	require.NoError(t, err)
	for dir := range pure {
		if _, err := os.Stat(filepath.Join(root, dir)); os.IsNotExist(err) {
			continue
		}
		ctx := build.Default
		var first []string
		for _, goos := range []string{"linux", "darwin", "windows"} {
			ctx.GOOS, ctx.CgoEnabled = goos, false
			pkg, err := ctx.ImportDir(filepath.Join(root, dir), 0)
			require.NoError(t, err)
			if first == nil {
				first = pkg.GoFiles
			}
			require.Equal(t, first, pkg.GoFiles, "%s on %s", dir, goos)
		}
	}
}
