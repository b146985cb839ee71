// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

// PermitIsCurrent reports whether readers see what the leases of the host permit now. The
// caller is called by a turn: by the transport's Send, or the log's TryAppend.
func (h *Host) PermitIsCurrent() bool {
	p := h.local.Permit()
	return h.driver.replica.Permit(p) == p
}
