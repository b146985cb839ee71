// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kvpb

import (
	"errors"
	"strings"

	"google.golang.org/grpc/status"
)

// StatusIn returns the status that an error is or wraps. The message is the text of the whole
// error without gRPC's own words, such as "rpc error: code = Unavailable".
func StatusIn(err error) (*status.Status, bool) {
	var in interface{ GRPCStatus() *status.Status }
	if !errors.As(err, &in) {
		return nil, false
	}
	s := in.GRPCStatus()
	p := s.Proto() // a copy
	p.Message = strings.ReplaceAll(err.Error(), s.Err().Error(), s.Message())
	return status.FromProto(p), true
}
