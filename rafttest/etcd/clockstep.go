// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/build"
	"os"
	"path/filepath"
	"strings"
)

// A test cannot step the time of day of a single process: CLOCK_REALTIME belongs to the machine, no
// namespace has its own, and Go asks the vDSO, before any library of C could intervene. So etcd is
// built here with an overlay of Go's package time. With the overlay, Now adds to the time of day,
// and only there, the seconds in a file named by stepVariable; monotonic readings are unchanged, as
// after a step of the system's clock. All sources of etcd and Weft are unchanged, too.
const stepVariable = "CONFORMANCE_CLOCK_STEP"

// Lines of Now in package time, without and with the step.
const (
	nowReads   = "\tsec, nsec, mono := runtimeNow()\n"
	nowStepped = nowReads + "\tsec = stepped(sec)\n"
)

// stepSource is a file that the overlay adds to package time.
const stepSource = `package time

import (
	"syscall"
	"unsafe"
)

var clockStep = mapClockStep()

func mapClockStep() *int64 {
	name, ok := syscall.Getenv("` + stepVariable + `")
	if !ok {
		return nil
	}
	fd, err := syscall.Open(name, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		panic("time: " + name + ": " + err.Error())
	}
	page, err := syscall.Mmap(fd, 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic("time: " + name + ": " + err.Error())
	}
	return (*int64)(unsafe.Pointer(&page[0]))
}

func stepped(sec int64) int64 {
	if clockStep == nil {
		return sec
	}
	return sec + *clockStep
}
`

// replaced returns the source in a file with old, which must occur once, replaced.
func replaced(file, old, by string) (string, error) {
	src, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(src), old); n != 1 {
		return "", fmt.Errorf("%s: %q occurs %d times, want once", file, old, n)
	}
	return strings.Replace(string(src), old, by, 1), nil
}

// overlay writes an overlay of files, and returns the flag that names the overlay.
func (w *workdir) overlay(name string, files map[string]string) (flag string, err error) {
	replace := map[string]string{}
	var errs []error
	for path, src := range files {
		file := w.path(name + "-" + filepath.Base(path))
		replace[path] = file
		errs = append(errs, os.WriteFile(file, []byte(src), 0o600))
	}
	data, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	list := w.path(name + ".json")
	errs = append(errs, err, os.WriteFile(list, data, 0o600))
	return "-overlay=" + list, errors.Join(errs...)
}

// steppedTime returns the files of the overlay of package time.
func steppedTime() (map[string]string, error) {
	dir := filepath.Join(build.Default.GOROOT, "src", "time")
	file := filepath.Join(dir, "time.go")
	src, err := replaced(file, nowReads, nowStepped)
	if err != nil {
		return nil, err
	}
	return map[string]string{file: src, filepath.Join(dir, "zz_step.go"): stepSource}, nil
}

// buildStepped builds etcd on Weft with a time of day that can be stepped.
func (w *workdir) buildStepped(ctx context.Context, name string) (string, error) {
	files, err := steppedTime()
	if err != nil {
		return "", err
	}
	return w.buildOverlaid(ctx, name, files)
}

func (w *workdir) buildOverlaid(ctx context.Context, name string, files map[string]string) (string, error) {
	flag, err := w.overlay(name, files)
	if err != nil {
		return "", err
	}
	progress("%s: etcd with an overlay", name)
	return w.buildServer(ctx, coreWeft, name, flag)
}
