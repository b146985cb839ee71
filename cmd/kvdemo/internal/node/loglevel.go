// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weftraft/weft/cmd/kvdemo/internal/client"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
)

// maxLevelBytes bounds the body of a PUT of the log's level.
const maxLevelBytes = 64

// setLogLevel changes the level of the log, unless it is to stay ("").
func (n *node) setLogLevel(level, by string) error {
	was := n.cfg.LogLevel.String()
	if level == "" || level == was {
		return nil
	}
	if err := n.cfg.LogLevel.Set(level); err != nil {
		return fmt.Errorf("level: %w", err)
	}
	n.cfg.Log.Warn("the level of the log was changed", "from", was, "to", level, "by", by)
	return nil
}

// SetLogLevel implements kvpb.AdminServer.
func (a *admin) SetLogLevel(_ context.Context, req *kvpb.SetLogLevelRequest) (*kvpb.SetLogLevelResponse, error) {
	if err := a.n.setLogLevel(req.GetLevel(), "an operator"); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	return &kvpb.SetLogLevelResponse{Level: a.n.cfg.LogLevel.String()}, nil
}

// serveLogLevel answers GET with the level of the log, and takes another by PUT. The server asks nobody for
// a certificate, so only this machine may change the level.
func (n *node) serveLogLevel(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPut {
		if err := client.CheckLoopback(r.RemoteAddr); err != nil {
			http.Error(w, fmt.Sprintf("%s is another machine: use kvdemo log-level, or ask from the node's own machine", r.RemoteAddr), http.StatusForbidden)
			return
		}
		level, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxLevelBytes))
		if err == nil && len(level) == 0 {
			err = errors.New(`level: "", want debug, info, warn or error`)
		}
		if err == nil {
			err = n.setLogLevel(string(level), r.RemoteAddr)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	_, _ = fmt.Fprintln(w, n.cfg.LogLevel) // whoever asked may be gone
}
