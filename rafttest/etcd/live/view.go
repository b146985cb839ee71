// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// view is a member's view of its leases, shown at /debug/vars.
type view struct {
	Stable, Retired bool
	Responders      []string
	Reads           served
}

// served counts linearizable reads by the lease that answered them. Redirected reads went to the
// leader, and cannot be distinguished from reads without leases.
type served struct{ Local, Leader, Redirected uint64 }

func (s *served) add(o served) {
	s.Local, s.Leader, s.Redirected = s.Local+o.Local, s.Leader+o.Leader, s.Redirected+o.Redirected
}

// viewTimeout bounds a question about metrics. A late answer fails no run.
const viewTimeout = 2 * time.Second

// fetch returns the answer of a member at a path, and the time by the member's own clock.
func (m *member) fetch(ctx context.Context, path string) (body []byte, date time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, viewTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+m.Client+path, nil)
	if err != nil {
		return nil, date, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, date, err
	}
	body, err = io.ReadAll(resp.Body)
	err = errors.Join(err, resp.Body.Close())
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", m.name, path, resp.Status)
	}
	if err != nil {
		return nil, date, err
	}
	date, err = http.ParseTime(resp.Header.Get("Date"))
	return body, date, err
}

var errNoLeases = errors.New("the member shows no leases")

// look returns the member's view of its leases.
func (m *member) look(ctx context.Context) (view, error) {
	body, _, err := m.fetch(ctx, "/debug/vars")
	if err != nil {
		return view{}, err
	}
	var vars struct {
		Status struct{ Leases *view } `json:"raft.status"`
	}
	if err := json.Unmarshal(body, &vars); err != nil {
		return view{}, fmt.Errorf("%s at /debug/vars: %w", m.name, err)
	}
	if vars.Status.Leases == nil {
		return view{}, fmt.Errorf("%s: %w", m.name, errNoLeases)
	}
	return *vars.Status.Leases, nil
}

// sample notes the number of reads that the member has served. If the member does not answer, the
// last number stays.
func (m *member) sample(ctx context.Context) {
	if v, err := m.look(ctx); err == nil {
		m.latest = v.Reads
	}
}

// metric adds up a member's metrics whose name, with its first labels, begins with prefix.
func (m *member) metric(ctx context.Context, prefix string) (total float64, err error) {
	body, _, err := m.fetch(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	lines := bufio.NewScanner(strings.NewReader(string(body)))
	for lines.Scan() {
		if !strings.HasPrefix(lines.Text(), prefix) {
			continue
		}
		_, number, _ := strings.Cut(lines.Text(), "} ")
		n, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return 0, fmt.Errorf("metric %q: %w", lines.Text(), err)
		}
		total += n
	}
	return total, lines.Err()
}

// snapshotsReceived returns the number of snapshots that the member has received.
func (m *member) snapshotsReceived(ctx context.Context) (int, error) {
	n, err := m.metric(ctx, "etcd_network_snapshot_receive_success{")
	return int(n), err
}
