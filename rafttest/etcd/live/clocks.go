// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/weftraft/weft/internal/lab"
)

// stepFile is the path of the file with the step of a member's time of day.
func stepFile(n *lab.Node) string { return n.Data + ".step" }

// writeStep overwrites the file in place, because processes have the file mapped.
func writeStep(path string, step time.Duration) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.Write(binary.NativeEndian.AppendUint64(nil, uint64(step/time.Second))); err != nil {
		_ = f.Close() // the first error is returned
		return err
	}
	return f.Close()
}

// step steps the time of day at a member, if the binaries support steps.
func (r *run) step(m *member, step time.Duration) error {
	if r.Stepped == "" {
		return nil
	}
	r.report.Leases.Steps++
	return writeStep(stepFile(m.Node), step)
}

// stepShows checks that the time of day of a member shows the step.
func (r *run) stepShows(ctx context.Context, m *member, step time.Duration) error {
	if r.Stepped == "" {
		return nil
	}
	return r.Wait(ctx, "a step of the time of day of "+m.name, func(ctx context.Context) error {
		_, date, err := m.fetch(ctx, "/version")
		if err != nil {
			return err
		}
		if off := time.Until(date) - step; off.Abs() > time.Minute {
			return fmt.Errorf("it is wrong by %v, and not by %v", time.Until(date).Round(time.Second), step)
		}
		return nil
	})
}

// inTimeNamespace returns the beginning of a command line whose program finds the clocks of the
// system ahead by this much, except the time of day.
func inTimeNamespace(ahead time.Duration) []string {
	seconds := strconv.Itoa(int(ahead / time.Second))
	return []string{"unshare", "--time", "--boottime", seconds, "--monotonic", seconds}
}

// tryTimeNamespace returns an error if this machine does not allow time namespaces, which need
// Linux, root, and the program unshare.
func tryTimeNamespace(ctx context.Context) error {
	args := append(inTimeNamespace(time.Hour), "true")
	if out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", args[0], err, out)
	}
	return nil
}
