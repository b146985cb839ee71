// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/lab"
)

// shows returns a member that answers with given texts, by path.
func shows(t *testing.T, texts map[string]string) *member {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, ok := texts[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = fmt.Fprint(w, text) // the test fails if the text is missing
	}))
	t.Cleanup(server.Close)
	return &member{Node: &lab.Node{Host: lab.Host{Client: server.Listener.Addr().String()}}, name: "m"}
}

func TestMemberTellsOfItsLeases(t *testing.T) {
	m := shows(t, map[string]string{"/debug/vars": `{"raft.status": {"id":"1","leases":{"stable":true,"retired":false,"responders":["a"],"reads":{"local":3,"leader":4,"redirected":5}}}}`})
	v, err := m.look(t.Context())
	require.NoError(t, err)
	require.Equal(t, view{Stable: true, Responders: []string{"a"}, Reads: served{3, 4, 5}}, v)
	m.sample(t.Context())
	require.Equal(t, served{3, 4, 5}, m.latest)

	_, err = shows(t, map[string]string{"/debug/vars": `{"raft.status": {"id":"1"}}`}).look(t.Context())
	require.ErrorIs(t, err, errNoLeases)
	_, err = shows(t, map[string]string{"/debug/vars": `none`}).look(t.Context())
	require.Error(t, err)
	gone := shows(t, nil)
	_, err = gone.look(t.Context())
	require.ErrorContains(t, err, "404")
	gone.latest = served{Local: 1}
	gone.sample(t.Context())
	require.Equal(t, served{Local: 1}, gone.latest, "a member that does not answer has served what it had")
}

func TestMetricsOfAllLabelsAddUp(t *testing.T) {
	m := shows(t, map[string]string{"/metrics": "# HELP sent bytes\nsent{To=\"a\"} 1.5e+03\nsent{To=\"b\"} 20\nsent_more{To=\"b\"} 7\n"})
	n, err := m.metric(t.Context(), "sent{")
	require.NoError(t, err)
	require.InDelta(t, 1520, n, 0)
	_, err = shows(t, map[string]string{"/metrics": "sent{To=\"a\"} many\n"}).metric(t.Context(), "sent{")
	require.ErrorContains(t, err, "many")
}

func TestStepOfTheTimeOfDayIsWrittenInPlace(t *testing.T) {
	path := stepFile(&lab.Node{Data: filepath.Join(t.TempDir(), "m")})
	require.NoError(t, writeStep(path, time.Hour))
	before, err := os.Stat(path)
	require.NoError(t, err)
	require.NoError(t, writeStep(path, -time.Hour))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, int64(-3600), int64(binary.NativeEndian.Uint64(data)))
	after, err := os.Stat(path)
	require.NoError(t, err)
	require.True(t, os.SameFile(before, after), "processes have it mapped")
}

func TestReportSaysWhatWasDone(t *testing.T) {
	r := LeaseReport{Local: 1, Leader: 2, Stops: 3, Steps: 4, Boots: 5}
	require.Contains(t, r.String(), "1 at responders, 2 at leaders")
	require.Contains(t, r.String(), "5 starts with another origin")
	r.NoBoots = os.ErrPermission
	require.Contains(t, r.String(), "no start with another origin of CLOCK_BOOTTIME: permission denied")
	c := ReadCost{Bytes: 214.4, Median: 340 * time.Microsecond, Served: &served{Local: 9, Leader: 1}}
	require.Equal(t, "214 B between members and 340µs each (9 by a responder, 1 by the leader's lease)", c.String())
}
