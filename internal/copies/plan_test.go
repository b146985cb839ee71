// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package copies

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/files"
)

// A process is killed in Recover, between writing its plan and syncing the plan's name. The next one goes by the plan only when power
// cannot take it away from under a state that begins anew.
func TestPlanOfAKilledProcessIsMadeDurableFirst(t *testing.T) {
	var synced []string
	syncDir = func(dir string) error {
		synced = append(synced, dir)
		return files.SyncDir(dir)
	}
	defer func() { syncDir = files.SyncDir }()
	r := &recovery{directory: &directory{Config: Config{Dir: t.TempDir()}}}
	p, err := r.begun()
	require.NoError(t, err)
	require.Nil(t, p)
	require.Empty(t, synced)

	require.NoError(t, os.WriteFile(planPath(r.Dir), []byte(`{"group":1,"index":9,"term":2}`), 0o600))
	p, err = r.begun()
	require.NoError(t, err)
	require.EqualValues(t, 9, p.Index)
	require.Equal(t, []string{r.Dir}, synced)
}
