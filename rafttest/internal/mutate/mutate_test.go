// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"flag"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A mutant whose text has gone, or that the compiler would refuse, is reported before anybody
// waits for its tests.
func TestCheckReportsMutantsThatAreNone(t *testing.T) {
	const file = "rafttest/internal/mutate/mutate.go"
	for name, tt := range map[string]struct {
		old, now string
		want     string
	}{
		"good":   {"errSame     = errors.New(", "errSame error = fmt.Errorf(", ""},
		"absent": {"no such" + " text", "", "does not occur exactly once"},
		"unused": {"	seen := map[string]bool{}\n", "	seen, none := map[string]bool{}, 0\n", "declared and not used: none"},
		"typed":  {"	seen := map[string]bool{}\n", "	seen := map[string]string{}\n", "non-boolean"},
		"import": {"func Root(ctx context.Context) (string, error) {\n", "func Root(context.Context) (string, error) {\n	ctx := error(nil)\n", "does not implement context.Context"},
		// What the mutant changes may be all right, and what uses it not.
		"others": {"scratch string, number int) (f Finding)", "scratch string, number int, _ bool) (f Finding)", "run.go"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Check(t.Context(), []Mutant{{What: name, File: file, Edits: [][2]string{{tt.old, tt.now}}}})
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tt.want)
		})
	}
}

// A flag that the tests no longer have ends a run as a failure does, and finds nothing.
func TestRunWithFlagsThatTestsDoNotHaveFindsNothing(t *testing.T) {
	tests := flag.NewFlagSet("tests", flag.ContinueOnError)
	var out strings.Builder
	tests.SetOutput(&out)
	tests.Int("seeds", 0, "")
	for _, wrong := range []string{"-seed=1", "-seeds=many"} {
		out.Reset()
		require.Error(t, tests.Parse([]string{wrong}))
		require.True(t, untested(out.String()), out.String())
	}
	require.False(t, untested("--- FAIL: TestCoded\nFAIL\n"))
}
