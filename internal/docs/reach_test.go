// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// maxClicks is how far from README a page may be.
const maxClicks = 2

// pages returns every page in root that is written for readers, with the pages that it
// links to, as paths from root.
func pages(t *testing.T, root string) map[string][]string {
	t.Helper()
	links := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && path != root && (strings.HasPrefix(e.Name(), ".") || e.Name() == "testdata" || e.Name() == "bin"):
			return filepath.SkipDir
		case e.IsDir() || filepath.Ext(path) != ".md":
			return nil
		}
		name, err := filepath.Rel(root, path)
		if err == nil {
			links[filepath.ToSlash(name)], err = targets(root, path)
		}
		return err
	})
	require.NoError(t, err)
	return links
}

// targets returns the files that a page links to, as paths from root. A link to a
// directory is one to its README.md.
func targets(root, page string) (found []string, err error) {
	text, err := os.ReadFile(page)
	if err != nil {
		return nil, err
	}
	for _, m := range link.FindAllStringSubmatch(string(text), -1) {
		if m[1] == "" || strings.Contains(m[1], "://") {
			continue
		}
		to := filepath.Join(filepath.Dir(page), m[1])
		if info, err := os.Stat(to); err == nil && info.IsDir() {
			to = filepath.Join(to, "README.md")
		}
		name, err := filepath.Rel(root, to)
		if err != nil {
			return nil, err
		}
		found = append(found, filepath.ToSlash(name))
	}
	return found, nil
}

// farther returns the pages that take more than so many clicks from the first page.
func farther(links map[string][]string, first string, clicks int) []string {
	seen := map[string]bool{first: true}
	at := []string{first}
	for range clicks {
		var next []string
		for _, page := range at {
			for _, to := range links[page] {
				if !seen[to] {
					seen[to] = true
					next = append(next, to)
				}
			}
		}
		at = next
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(links)), func(page string) bool { return seen[page] })
}

func TestEveryPageIsTwoClicksFromReadme(t *testing.T) {
	root, err := Root()
	require.NoError(t, err)
	links := pages(t, root)
	for _, known := range []string{"docs/kvdemo.md", "storage/DESIGN.md", "rafttest/etcd/README.md"} {
		require.Contains(t, links, known)
	}
	for _, page := range farther(links, "README.md", maxClicks) {
		t.Errorf("%s is not within %d clicks of README.md: link to the page from a page that README.md links to, such as docs/packages.md",
			page, maxClicks)
	}
	t.Logf("%d pages", len(links))
}

func TestPagesThatAreFarAreFound(t *testing.T) {
	links := map[string][]string{"a": {"b", "x"}, "b": {"c", "a"}, "c": {"d"}, "d": nil, "alone": {"a"}}
	require.Equal(t, []string{"alone", "d"}, farther(links, "a", 2))
	require.Equal(t, []string{"alone"}, farther(links, "a", 3))

	root := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(root, "sub"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(root, "a.md"), []byte("[b](sub#part) [web](https://example.com/c.md) [c](sub/c.md)"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(root, "sub", "c.md"), []byte("[a](../a.md)"), 0o600))
	require.Equal(t, map[string][]string{"a.md": {"sub/README.md", "sub/c.md"}, "sub/c.md": {"a.md"}}, pages(t, root))
}

// TestReadmeIsTwoScreens bounds what a stranger reads first.
func TestReadmeIsTwoScreens(t *testing.T) {
	root, err := Root()
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	require.LessOrEqual(t, strings.Count(string(text), "\n"), 110, "lines of README; detail belongs into docs")
}

// TestPackagesAreOnTheirPage looks for each public package of the modules that a service
// may require.
func TestPackagesAreOnTheirPage(t *testing.T) {
	root, err := Root()
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(root, "docs", "packages.md"))
	require.NoError(t, err)
	all, err := list(root, "{{if ne .Name \"main\"}}{{.ImportPath}}{{end}}", "work")
	require.NoError(t, err)
	public := slices.DeleteFunc(all, func(path string) bool {
		rel := strings.TrimPrefix(path, mainPath)
		return slices.ContainsFunc([]string{"/internal/", "/rafttest/", "/cmd/", "/docs/"}, func(s string) bool { return strings.Contains(rel+"/", s) })
	})
	require.Greater(t, len(public), 12)
	for _, path := range public {
		name := strings.TrimPrefix(strings.TrimPrefix(path, mainPath), "/")
		if name == "" {
			name = "weft"
		}
		if !strings.Contains(string(text), "[`"+name+"`]") {
			t.Errorf("docs/packages.md does not have [`%s`](...), a public package", name)
		}
	}
}

const mainPath = "github.com/weftraft/weft"
