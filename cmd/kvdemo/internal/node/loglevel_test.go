// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weftraft/weft/cmd/kvdemo/internal/logs"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
)

// The level of the log is changed by anybody on the node's own machine, and from elsewhere only by an operator,
// whose certificate was looked at.
func TestLogLevelIsChangedWhileTheNodeRuns(t *testing.T) {
	var out strings.Builder
	cfg := testConfig(t)
	var err error
	cfg.Log, cfg.LogLevel, err = logs.New(&out, logs.JSON, "info")
	require.NoError(t, err)
	n := newNode(cfg)
	require.NoError(t, n.open(t.Context()))
	defer func() { require.NoError(t, n.close()) }()
	web := n.newWeb(http.NotFoundHandler()).Handler
	ask := func(method, from, level string) (int, string) {
		r := httptest.NewRequest(method, "http://127.0.0.1/log-level", strings.NewReader(level))
		r.RemoteAddr = from
		w := httptest.NewRecorder()
		web.ServeHTTP(w, r)
		body, err := io.ReadAll(w.Result().Body)
		require.NoError(t, err)
		return w.Code, strings.TrimSpace(string(body))
	}
	for _, c := range []struct {
		method, from, level string
		code                int
		says                string
		then                string
	}{
		{http.MethodGet, "10.0.0.9:5", "", http.StatusOK, "info", "info"},
		{http.MethodPut, "127.0.0.1:5", "debug", http.StatusOK, "debug", "debug"},
		{http.MethodPut, "[::1]:5", "error", http.StatusOK, "error", "error"},
		{http.MethodPut, "10.0.0.9:5", "debug", http.StatusForbidden, "10.0.0.9:5 is another machine: use kvdemo log-level, or ask from the node's own machine", "error"},
		{http.MethodPut, "127.0.0.1:5", "fatal", http.StatusBadRequest, `level: "fatal", want debug, info, warn or error`, "error"},
		{http.MethodPut, "127.0.0.1:5", "", http.StatusBadRequest, `level: "", want debug, info, warn or error`, "error"},
		{http.MethodPut, "127.0.0.1:5", strings.Repeat("x", 1000), http.StatusBadRequest, "http: request body too large", "error"},
	} {
		code, says := ask(c.method, c.from, c.level)
		require.Equal(t, c.code, code, c)
		require.Equal(t, c.says, says)
		require.Equal(t, c.then, cfg.LogLevel.String())
	}

	operator := &admin{n: n}
	resp, err := operator.SetLogLevel(t.Context(), &kvpb.SetLogLevelRequest{Level: "warn"})
	require.NoError(t, err)
	require.Equal(t, "warn", resp.GetLevel())
	resp, err = operator.SetLogLevel(t.Context(), &kvpb.SetLogLevelRequest{})
	require.NoError(t, err)
	require.Equal(t, "warn", resp.GetLevel(), "it was only asked for")
	_, err = operator.SetLogLevel(t.Context(), &kvpb.SetLogLevelRequest{Level: "loud"})
	require.Equal(t, codes.InvalidArgument, status.Code(err))
	require.Equal(t, "warn", cfg.LogLevel.String())
	require.Contains(t, out.String(), `"msg":"the level of the log was changed","from":"info","to":"debug","by":"127.0.0.1:5"`)
}
