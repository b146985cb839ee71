// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// executedElsewhere lists the snippets, by document and language, that a test
// of another package executes as they stand.
var executedElsewhere = map[[2]string]struct{ dir, test string }{
	{"README.md", "console"}:       {"examples/counter", "TestReadme"},
	{"docs/adopt.md", "sh"}:        {"rafttest/shim", "TestAdopt"},
	{"docs/adopt-etcd.md", "sh"}:   {"rafttest/etcd", "TestAdoptEtcd"},
	{"docs/adopt.md", "console"}:   {"docs/adopt-your-own", "TestAdoptYourOwn"},
	{"docs/kvdemo.md", "yaml"}:     {"cmd/kvdemo", "TestDocumentedSettings"},
	{"docs/service.md", "sh"}:      {"docs/service", "TestPageIsFollowedOutsideTheRepository"},
	{"docs/operations.md", "bash"}: {"cmd/kvdemo", "TestDeployPage"},
	{"docs/kvdemo.md", "console"}:  {"cmd/kvdemo", "TestDocs"},
	{"docs/grow.md", "console"}:    {"cmd/kvdemo", "TestDocs"},
}

// documents lists the Markdown files that are written for readers.
func documents(t *testing.T) (root string, files []string) {
	t.Helper()
	root, err := Root()
	require.NoError(t, err)
	for page := range pages(t, root) {
		files = append(files, filepath.Join(root, page))
	}
	slices.Sort(files)
	require.Contains(t, files, filepath.Join(root, "README.md"))
	return root, files
}

// TestSnippets executes or compiles every snippet, as its language demands.
func TestSnippets(t *testing.T) {
	root, files := documents(t)
	c := checker{root: root, scratch: t.TempDir(), programs: map[string]string{}, packages: map[string][]string{}}
	count := 0
	for _, file := range files {
		snippets, err := Snippets(file)
		require.NoError(t, err)
		rel, err := filepath.Rel(root, file)
		require.NoError(t, err)
		for _, s := range snippets {
			count++
			if err := c.check(rel, s); err != nil {
				t.Errorf("%s: %v", s.Pos(), err)
			}
		}
	}
	t.Logf("%d snippets in %d documents", count, len(files))
}

// checker checks snippets against the module in root.
type checker struct {
	root string
	// programs are those that were built, in scratch, by their folders, and packages the folders of packages by root and
	// patterns. The pages name few of either, often.
	scratch  string
	programs map[string]string
	packages map[string][]string
}

func (c checker) check(doc string, s Snippet) error {
	if by, ok := executedElsewhere[[2]string{doc, s.Lang}]; ok {
		if !hasTest(filepath.Join(c.root, by.dir), by.test) {
			return fmt.Errorf("%s, which should execute it, is not in %s", by.test, by.dir)
		}
		return nil
	}
	switch s.Lang {
	case "go":
		return c.checkGo(s)
	case "sh":
		return c.checkShell(s.Text)
	case "diff":
		return checkDiff(s.Text)
	case "text": // what a command prints
		return nil
	default:
		return fmt.Errorf("a snippet of language %q, of which nothing is known here", s.Lang)
	}
}

// checkGo compiles a snippet that is a whole file, and finds one that is part
// of a file in that file, which is compiled with its package.
func (c checker) checkGo(s Snippet) error {
	if s.From != "" {
		src, err := os.ReadFile(filepath.Join(c.root, s.From))
		if err != nil {
			return err
		}
		if !strings.Contains(folded(string(src)), folded(s.Text)) {
			return fmt.Errorf("not found in %s", s.From)
		}
		return nil
	}
	if !strings.HasPrefix(strings.TrimSpace(s.Text), "package ") {
		return fmt.Errorf("a part of a Go file must say which: ```go from=PATH")
	}
	dir, err := os.MkdirTemp(c.root, ".snippet-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "snippet.go")
	if err := os.WriteFile(file, []byte(s.Text), 0o600); err != nil {
		return err
	}
	return c.run("go", "vet", file)
}

// folded makes texts comparable that differ in indentation only.
func folded(text string) string { return strings.Join(strings.Fields(text), " ") }

// checkShell checks commands that would be too long, or go in circles, when
// executed here: that each is there and knows the flags that it is given.
func (c checker) checkShell(text string) error {
	dir := c.root
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		line, _, _ = strings.Cut(line, " # ")
		for command := range strings.SplitSeq(line, "&&") {
			words := strings.Fields(command)
			if len(words) == 0 || strings.HasPrefix(words[0], "#") {
				continue
			}
			if words[0] == "cd" && len(words) == 2 {
				dir = filepath.Join(dir, words[1])
				continue
			}
			if err := c.checkCommand(dir, words); err != nil {
				return fmt.Errorf("%s: %w", strings.TrimSpace(command), err)
			}
		}
	}
	return nil
}

func (c checker) checkCommand(dir string, words []string) error {
	inDir := c
	inDir.root = dir
	switch {
	case words[0] == "go" && words[1] == "mod": // docs/service.md is executed with these lines
		return inDir.run("go", "help", "mod", words[2])
	case words[0] == "make":
		return inDir.run("make", append([]string{"-n"}, words[1:]...)...)
	case words[0] == "go" && words[1] == "test":
		return inDir.checkGoTest(words[2:])
	case words[0] == "go" && words[1] == "run" && len(words) > 2:
		return inDir.checkProgram(words[2], words[3:])
	case words[0] == "kvdemo" || words[0] == "raftswap":
		return c.checkProgram("./cmd/"+words[0], words[1:])
	}
	return fmt.Errorf("no way to check %q is known here", words[0])
}

var testName = regexp.MustCompile(`\b((?:Test|Benchmark|Fuzz|Example)\w+)`)

// checkGoTest checks that the packages exist, and the tests that are named.
func (c checker) checkGoTest(args []string) error {
	var patterns []string
	for i, a := range args {
		// An argument that begins like a path and does not follow a flag.
		if strings.HasPrefix(a, ".") && (i == 0 || !strings.HasSuffix(args[i-1], "-run")) {
			patterns = append(patterns, a)
		}
	}
	key := strings.Join(append([]string{c.root}, patterns...), " ")
	dirs, known := c.packages[key]
	if !known {
		var err error
		if dirs, err = list(c.root, "{{.Dir}}", patterns...); err != nil {
			return err
		}
		c.packages[key] = dirs
	}
	for _, name := range testName.FindAllString(strings.Join(args, " "), -1) {
		if !slices.ContainsFunc(dirs, func(dir string) bool { return hasTest(dir, name) }) {
			return fmt.Errorf("no test named %s", name)
		}
	}
	return nil
}

// list asks the go command for a thing of each of the packages. What the command says beside
// that, as of downloads, is no answer.
func list(root, thing string, patterns ...string) ([]string, error) {
	var said strings.Builder
	cmd := exec.Command("go", append([]string{"list", "-f", thing}, patterns...)...)
	cmd.Dir, cmd.Stderr = root, &said
	cmd.Env = append(os.Environ(), "GOWORK=") // commands are for a whole checkout
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, said.String())
	}
	return strings.Fields(string(out)), nil
}

func hasTest(dir, name string) bool { return hasFunc(dir, name+"(") }

// hasFunc reports whether the tests of a package have a function whose declaration begins so.
func hasFunc(dir, name string) bool {
	files, _ := filepath.Glob(filepath.Join(dir, "*_test.go")) // the pattern is valid
	for _, f := range files {
		if src, err := os.ReadFile(f); err == nil && strings.Contains(string(src), "\nfunc "+name) {
			return true
		}
	}
	return false
}

// checkProgram asks a program for the help of the verb that it is given, and
// looks for the flags in it.
func (c checker) checkProgram(pkg string, args []string) error {
	verb := []string{}
	for _, a := range args {
		if strings.HasPrefix(a, "-") {
			break
		}
		verb = append(verb, a)
	}
	program, err := c.program(pkg)
	if err != nil {
		return err
	}
	cmd := exec.Command(program, append(verb, "--help")...)
	cmd.Dir = c.root
	help, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("--help: %w: %s", err, help)
	}
	if len(verb) > 0 && !strings.Contains(string(help), " "+verb[0]) {
		return fmt.Errorf("%s knows no %s", pkg, verb[0])
	}
	for _, a := range args {
		name, _, _ := strings.Cut(a, "=")
		if strings.HasPrefix(a, "--") && !strings.Contains(string(help), name+" ") {
			return fmt.Errorf("the help knows no flag %s", name)
		}
	}
	return nil
}

// program builds a program, once.
func (c checker) program(pkg string) (string, error) {
	dir := filepath.Join(c.root, pkg)
	file, built := c.programs[dir]
	if !built {
		file = filepath.Join(c.scratch, fmt.Sprint(len(c.programs)))
		if err := c.run("go", "build", "-ldflags=-s -w", "-o", file, pkg); err != nil {
			return "", err
		}
		c.programs[dir] = file
	}
	return file, nil
}

func (c checker) run(name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir = c.root
	cmd.Env = append(os.Environ(), "GOWORK=") // commands are for a whole checkout
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// checkDiff accepts the import swap, the one diff that documents show.
func checkDiff(text string) error {
	const want = "-import \"go.etcd.io/raft/v3\"\n+import \"github.com/weftraft/weft/raft\"\n"
	if text != want {
		return fmt.Errorf("a diff other than the import swap")
	}
	return nil
}

var link = regexp.MustCompile(`\]\(([^)#]*)(?:#([^)]*))?\)`)

// TestLinks follows every link to a file, and to a heading of a page.
func TestLinks(t *testing.T) {
	_, files := documents(t)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			to := file
			if m[1] != "" {
				to = filepath.Join(filepath.Dir(file), m[1])
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: broken link: %v", file, err)
			} else if m[2] != "" && filepath.Ext(to) == ".md" && !slices.Contains(anchors(t, to), m[2]) {
				t.Errorf("%s: broken link: %s has no heading #%s", file, to, m[2])
			}
		}
	}
}

var (
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	noPart  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors returns the names by which links find the headings of a page, as GitHub forms them.
func anchors(t *testing.T, page string) (names []string) {
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	for _, m := range heading.FindAllStringSubmatch(string(text), -1) {
		names = append(names, strings.ReplaceAll(noPart.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return names
}

func TestHeadingsAreFound(t *testing.T) {
	page := filepath.Join(t.TempDir(), "a.md")
	require.NoError(t, os.WriteFile(page, []byte("# A, and `b_c`\n\ntext\n\n### Rule L3: cuts\n"), 0o600))
	require.Equal(t, []string{"a-and-b_c", "rule-l3-cuts"}, anchors(t, page))
}

// TestCheckerRefuses shows that a wrong snippet does not pass.
func TestCheckerRefuses(t *testing.T) {
	root, err := Root()
	require.NoError(t, err)
	c := checker{root: root, scratch: t.TempDir(), programs: map[string]string{}, packages: map[string][]string{}}
	for want, s := range map[string]Snippet{
		"No rule":             {Lang: "sh", Text: "make coffee\n"},
		"no test named":       {Lang: "sh", Text: "go test -run TestNoSuchThing ./internal/docs\n"},
		"no such":             {Lang: "sh", Text: "cd nowhere && go test .\n"},
		"knows no flag":       {Lang: "sh", Text: "go run ./cmd/raftswap shim --velocity 3 DIR\n"},
		"unknown command":     {Lang: "sh", Text: "raftswap unravel DIR\n"},
		"no way to check":     {Lang: "sh", Text: "curl example.com\n"},
		"must say which":      {Lang: "go", Text: "x := 1\n"},
		"not found in":        {Lang: "go", From: "internal/docs/fences.go", Text: "func Nowhere() {}\n"},
		"undefined: y":        {Lang: "go", Text: "package main\n\nfunc main() { _ = y }\n"},
		"nothing is known":    {Lang: "cobol", Text: "MOVE A TO B.\n"},
		"other than the swap": {Lang: "diff", Text: "-a\n+b\n"},
	} {
		err := c.check("README.md", s)
		if want == "other than the swap" {
			want = "other than the import swap"
		}
		require.ErrorContains(t, err, want)
	}
	for _, s := range []Snippet{
		{Lang: "sh", Text: "make help\n"},
		{Lang: "sh", Text: "go test -run TestLinks ./internal/docs\n"},
		{Lang: "sh", Text: "# a comment\ngo run ./cmd/raftswap shim --weft . DIR\n"},
		{Lang: "go", Text: "package main\n\nfunc main() {}\n"},
		{Lang: "go", From: "internal/docs/fences.go", Text: "type Snippet struct {\n"},
	} {
		require.NoError(t, c.check("README.md", s))
	}
}

func TestSnippetsOfAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.md")
	require.NoError(t, os.WriteFile(file, []byte("# A\n\n```go from=a/b.go\nx\ny\n```\ntext\n```sh\nmake\n```\n"), 0o600))
	got, err := Snippets(file)
	require.NoError(t, err)
	require.Equal(t, []Snippet{
		{File: file, Line: 4, Lang: "go", From: "a/b.go", Text: "x\ny\n"},
		{File: file, Line: 9, Lang: "sh", Text: "make\n"},
	}, got)
	require.NoError(t, os.WriteFile(file, []byte("```sh\nmake\n"), 0o600))
	_, err = Snippets(file)
	require.ErrorContains(t, err, "a.md:2: the fence is not closed")
}

var (
	roundsOfEtcd = regexp.MustCompile(`(\d+) rounds of`)
	putsOfEtcd   = regexp.MustCompile(`(?m)^\| puts a second of unedited etcd[^|]*\| ([\d.]+) \| ([\d.]+):`)
)

// TestTestsThatPagesNameExist looks for the packages and tests of commands that pages name in
// passing, as in the tables of docs/questions.md and docs/evidence.md.
func TestTestsThatPagesNameExist(t *testing.T) {
	root, err := Root()
	require.NoError(t, err)
	files, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	require.NoError(t, err)
	checked := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range inlineTest.FindAllStringSubmatch(folded(string(text)), -1) {
			words := strings.Fields(m[1])
			dir := slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, ".") })
			require.GreaterOrEqual(t, dir, 0, "%s: go test %s: no package", file, m[1])
			if strings.Contains(words[dir], "...") {
				continue
			}
			checked++
			require.DirExists(t, filepath.Join(root, words[dir]), "%s: go test %s", file, m[1])
			for _, name := range testName.FindAllString(m[1], -1) {
				require.True(t, hasFunc(filepath.Join(root, words[dir]), name), "%s: go test %s: no test begins like that", file, m[1])
			}
		}
	}
	require.Greater(t, checked, 20)
}

// TestTestsOfOldBugsExist looks for the tests that rafttest/bugs.md names. A mend that is lost in a
// merge takes its test along, and then no test fails.
func TestTestsOfOldBugsExist(t *testing.T) {
	root, err := Root()
	require.NoError(t, err)
	page, err := os.ReadFile(filepath.Join(root, "rafttest", "bugs.md"))
	require.NoError(t, err)
	var tests strings.Builder
	require.NoError(t, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		src, err := os.ReadFile(path)
		tests.Write(src)
		return err
	}))
	checked := 0
	for _, m := range inlineTest.FindAllStringSubmatch(string(page), -1) {
		for _, name := range testName.FindAllString(m[1], -1) {
			checked++
			require.Contains(t, tests.String(), "\nfunc "+name, "rafttest/bugs.md: go test %s", m[1])
		}
	}
	require.Greater(t, checked, 100)
}

var inlineMake = regexp.MustCompile("`make ([a-z-]+)`")

// TestTargets looks for the targets that documents name in passing.
func TestTargets(t *testing.T) {
	root, files := documents(t)
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range inlineMake.FindAllStringSubmatch(string(text), -1) {
			if !strings.Contains(string(makefile), "\n"+m[1]+":") {
				t.Errorf("%s: the Makefile has no target %s", file, m[1])
			}
		}
	}
}

// TestNoMarksOfAMerge finds pages that were merged by hand and kept the marks of both sides.
func TestNoMarksOfAMerge(t *testing.T) {
	_, files := documents(t)
	mark := regexp.MustCompile(`(?m)^(<{7}|>{7}) `)
	require.True(t, mark.MatchString("a page\n"+strings.Repeat("<", 7)+" ours\n"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.False(t, mark.Match(text), "%s has marks of a merge", file)
	}
}
