// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A node that knows nobody by a certificate or a password listens at loopback addresses
// only, unless it is told that others may come.
func TestNodeWithoutCertificatesListensAtLoopbackOnly(t *testing.T) {
	const nonsense = `--log-level: "nonsense"` // so that no node starts
	refused := regexp.MustCompile(`--([a-z-]+): [^ ]+ is open to other machines`)
	serve := func(args ...string) []string {
		return append([]string{"serve", "--id", "1", "--data", "d", "--log-level", "nonsense"}, args...)
	}
	tls := []string{"--tls-cert", "c", "--tls-key", "k", "--tls-ca", "a"}
	for _, c := range []struct {
		args []string
		want []string // the flags that are refused
	}{
		{serve("--peers", "1=127.0.0.1:7200", "--resp", "[::1]:6379", "--http-listen", "localhost:7380"), nil},
		{serve("--peers", "1=127.9.9.9:7200", "--client-listen", "[::ffff:127.0.0.1]:7300"), nil},
		{serve("--peers", "1=10.0.0.1:7200"), []string{"peers"}},
		{serve("--peers", "1=10.0.0.1:7200", "--listen", "127.0.0.1:7200"), nil},
		{serve("--peers", "1=127.0.0.1:7200,2=10.0.0.2:7200", "--http-listen", "127.0.0.1:1", "--http-peers", "2=10.0.0.2:1"), nil},
		{serve("--peers", "1=127.0.0.1:7200", "--listen", ":7200"), []string{"listen"}},
		{
			serve("--peers", "1=127.0.0.1:7200", "--client-listen", "0.0.0.0:7300", "--resp", "[::]:6379", "--http-listen", "a-name:7380"),
			[]string{"client-listen", "http-listen", "resp"},
		},
		{append(serve("--peers", "1=10.0.0.1:7200", "--client-listen", ":7300", "--resp", ":6379", "--http-listen", ":7380"), tls...), nil},
		{serve("--peers", "1=10.0.0.1:7200", "--client-listen", ":7300", "--resp", ":6379", "--http-listen", ":7380", "--unprotected"), nil},
	} {
		r := kvdemo(t.Context(), "", c.args...)
		require.Equal(t, exitUsage, r.code, c.args)
		require.Contains(t, r.err, nonsense, c.args)
		var got []string
		for _, m := range refused.FindAllStringSubmatch(r.err, -1) {
			got = append(got, m[1])
		}
		slices.Sort(got)
		require.Equal(t, c.want, got, "%v: %s", c.args, r.err)
		require.Equal(t, len(got) > 0, regexp.MustCompile(`--unprotected`).MatchString(r.err))
	}
	for text, want := range map[string]string{
		"a long enough password\n": "", "windows\r\n": "", "no end": "", strings.Repeat("x", 512) + "\n": "",
		"": "want one line", "\n": "want one line", "two\nlines\n": "want one line", "nul\x00\n": "want one line", "\xff\n": "want one line",
		"\ufeffmark\n": "want one line", strings.Repeat("x", 513): "want one line of 1 to 512 bytes",
	} {
		file := filepath.Join(t.TempDir(), "password")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		r := kvdemo(t.Context(), "", serve("--peers", "1=127.0.0.1:7200", "--resp", ":6379", "--resp-password-file", file)...)
		require.Contains(t, r.err, nonsense)
		require.Contains(t, r.err, want, "%q", text)
		require.Equal(t, want != "", strings.Contains(r.err, "--resp"), "%q: %s", text, r.err)
	}
	r := kvdemo(t.Context(), "", serve("--peers", "1=127.0.0.1:7200", "--resp", ":6379", "--resp-password-file", "/nonexistent")...)
	require.Contains(t, r.err, "--resp-password-file: open /nonexistent")
	file := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(file, []byte("p"), 0o600))
	r = kvdemo(t.Context(), "", serve("--peers", "1=127.0.0.1:7200", "--resp-password-file", file)...)
	require.Contains(t, r.err, "--resp-password-file: the password is for clients of --resp")
	r = kvdemo(t.Context(), "", "demo", "--serve=0.0.0.0:0", "--nodes", "1")
	require.Equal(t, exitUsage, r.code)
	require.Contains(t, r.err, "--serve: 0.0.0.0:0 is open to other machines")
	r = kvdemo(t.Context(), "", "demo", "--serve=0.0.0.0:0", "--unprotected", "--nodes", "1")
	require.Equal(t, exitUsage, r.code)
	require.NotContains(t, r.err, "--serve")
}
