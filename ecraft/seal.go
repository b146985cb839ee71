// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// The envelope of a coded entry, version 1: for tools that read logs, and for other implementations. TestGolden compares the
// examples at the end with this package.
//
// Numbers are little-endian. Checksums are CRC-32C (Castagnoli), as in iSCSI. P is the length of the clear prefix, a setting of
// the host and the same on all nodes.
//
// # Plain entries
//
// Configuration changes, empty entries and payloads below the coding threshold are in no envelope: their Data is the host's,
// byte for byte. Data is an envelope if at least 8 bytes follow the clear prefix, and at least 7 of the first 8 equal the magic.
// A good envelope has all 8 bytes of the magic; with a damaged byte the envelope counts as damaged, never as a payload. A host's
// payload that begins so itself goes into an envelope of kind whole, and so does a payload that is an envelope with another clear
// prefix. A node that must have no envelopes, or none with another prefix, recognizes envelopes by three things together: the
// magic, the length of the prefix behind the magic, which must be the magic's position, and the header's checksum.
//
// # Envelope
//
// Clear prefix, header, body. Prefix and header are the same on every node.
//
//	offset  bytes            field                                          bounds
//	0       P                clear prefix: the first bytes of the payload,  P at most 4096
//	                         with zeros after a shorter payload
//	P       8                magic: c3 9d 57 45 46 54 8e a1
//	P+8     1                version                                        1
//	P+9     1                kind: 1 whole, 2 coded, 3 carrier
//	P+10    2                P
//	P+12    4                length of the header, from the magic to its
//	                         checksum, both included
//	P+16    4                length of the payload                          at most 1 GiB; 0 in a carrier, not 0 if coded
//	P+20    4                checksum of the payload                        0 in a carrier
//	P+24    8                encoder: the leader that made the entry
//	P+32    1                D: data units                                  coded: 1 to 32, and D times slots at most 256; else 0
//	P+33    1                number of slots                                coded: 1 to 255; else 0
//	P+34    2                number of riders                               at most 1024
//	P+36    8 per slot       members: the node id that has the slot         not 0, not the encoder, none twice
//	        1 per slot       units assigned to the slot                     at most D
//	        17 + T per rider riders
//	        4                checksum of all bytes before, the clear prefix included
//
// The body is the node's own, in this order, and no bytes follow:
//
//  1. If the kind is coded, and the node has a slot with more than 0 and less than D units: a strip of the first units of the
//     slot, as many as the header assigns.
//  2. For each rider a strip, empty if the rider has no units for this node.
//  3. If the kind is whole, or coded and the node has no slot or a slot with D units: the payload, up to the end of Data.
//
// The encoder, and members that came later, have no slot.
//
// # Rider
//
// A rider raises the holdings of an older entry: a member that has stored the entry with the rider holds, in total, the rider's
// number of units of the older entry. A carrier has riders only; hosts see an empty entry.
//
//	bytes       field                                                       bounds
//	8           index of the older entry                                    ascending from rider to rider, below the entry's own
//	8           its term                                                    not 0
//	1           T: the slots of the older entry                             1 to 255
//	1 per slot  units held in total from here on; 0: not raised             at most 32
//
// The units of a rider for a node are all units of its slot in the older entry from the number that the older entry's header
// assigned up to the total, whatever other riders brought. A sender that has applied and forgotten the older entry, which is
// committed then, leaves these units out.
//
// # Strip
//
// Consecutive units of one slot. Messages between followers have the same form.
//
//	bytes           field                                                   bounds
//	1               slot                                                    at most 254
//	1               first: the place in the slot of the first unit
//	1               count                                                   first + count at most 32
//	1               0
//	4               U: bytes of a unit                                      1 to 1 GiB
//	4               checksum of the 8 bytes before
//	U + 4 per unit  the unit, and the checksum of slot (1 byte), place in the slot (1 byte), unit
//
// An empty strip has zeros for slot, first, count and U, and the checksum. A unit with a wrong checksum counts as missing; the
// other units are good.
//
// # Units
//
// With L bytes of payload, U is L/D, rounded up. Data unit c, for c from 0 to D-1, is bytes cU to (c+1)U of the payload, with
// zeros after the payload's end. Unit k of slot s is unit s + kS of the codeword, S being the number of slots, for k from 0 to
// D-1. Units from D on are parity: byte by byte, unit r is the sum over all data units c of
//
//	1/(r xor c) * unit c
//
// in GF(2^8) with the polynomial x^8 + x^4 + x^3 + x^2 + 1 (0x11d), where sums are exclusive or. Any D units give the payload
// back; the payload is good if its checksum equals the checksum in the header. D is the leader's choice for each entry.
//
// # Examples
//
// The payload "Hello, Weft!", made by node 1 in a group of five with D = 6 and two units for each follower, as node 4 stores it,
// with a clear prefix of one byte. Its slot is 2, so it holds units 2 and 6 of the codeword: "o,", and the first parity unit.
//
//	48                                               | clear prefix: H
//	c3 9d 57 45 46 54 8e a1 01 02 01 00 4c 00 00 00  | magic, version 1, coded, prefix of 1, header of 76
//	0c 00 00 00 00 03 66 31 01 00 00 00 00 00 00 00  | payload of 12, its checksum, encoder 1
//	06 04 00 00                                      | D 6, 4 slots, no riders
//	02 00 00 00 00 00 00 00 03 00 00 00 00 00 00 00  | members 2, 3,
//	04 00 00 00 00 00 00 00 05 00 00 00 00 00 00 00  | 4, 5
//	02 02 02 02                                      | two units each
//	7b bd 47 3d                                      | checksum of the header
//	02 00 02 00 02 00 00 00 86 cb bb 7a              | strip: slot 2, units 0 and 1, of 2 bytes, checksum
//	6f 2c b3 06 1b fd                                | unit 0: o, and checksum
//	13 ee 1d b4 2b 16                                | unit 1 and checksum
//
// A carrier that raises the first three followers to three units of the entry above, of index 7 and term 2, as node 4 stores the
// carrier: one more unit.
//
//	00                                               | clear prefix: there is no payload
//	c3 9d 57 45 46 54 8e a1 01 03 01 00 3d 00 00 00  | magic, version 1, carrier, prefix of 1, header of 61
//	00 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00  | no payload, encoder 1
//	00 00 01 00                                      | no D, no slots, one rider
//	07 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00  | index 7, term 2
//	04 03 03 03 00                                   | four slots: totals of 3, 3, 3; not raised
//	98 cd b9 52                                      | checksum of the header
//	02 02 01 00 02 00 00 00 cc 59 01 9e              | strip: slot 2, unit 2, of 2 bytes, checksum
//	3a b5 4b bd 94 c5                                | unit 2 and checksum
//
// The same carrier as node 5 stores it ends differently:
//
//	00 00 00 00 00 00 00 00 8a b2 28 8c              | an empty strip

package ecraft

import (
	"encoding/binary"
	"slices"
)

// Offsets in the header.
const (
	atVersion    = 8
	atKind       = 9
	atPrefixLen  = 10
	atHeaderLen  = 12
	atPayloadLen = 16
	atPayloadCRC = 20
	atEncoder    = 24
	atD          = 32
	atSlots      = 33
	atRiders     = 34
	fixedLen     = 36

	riderLen = 17 // without its totals

	version = 1
)

// magic is the beginning of every envelope, behind the clear prefix.
const magic = "\xc3\x9dWEFT\x8e\xa1"

// IsEnvelope reports whether data, behind a clear prefix of this many bytes, begins with the magic,
// or differs from the magic in at most one byte. No plain payload begins so, because the leader
// puts such payloads into an envelope of kind Whole. So one damaged byte never turns an envelope
// into a plain payload.
func IsEnvelope(data []byte, prefix int) bool {
	if len(data)-prefix < len(magic) {
		return false
	}
	wrong := 0
	for i := range len(magic) {
		if data[prefix+i] != magic[i] {
			wrong++
		}
	}
	return wrong <= 1
}

// Seal appends an entry's Data for node to: the header, the node's assigned units or the payload,
// and the units of riders. The header is valid and c is its codeword, nil for a carrier. riders[i]
// is the codeword of the entry that h.Riders[i] tops up, or nil to leave out its units. The first
// prefix bytes of the payload stand clear in front.
func Seal(dst []byte, h *Header, to uint64, prefix int, c *Codeword, riders []*Codeword) []byte {
	whole := h.Whole(to)
	if size := SealedLen(h, to, prefix, riders); whole && dst == nil {
		// append need not clear the memory for the payload.
		dst = make([]byte, 0, size-h.PayloadLen)
	} else {
		dst = slices.Grow(dst, size)
	}
	dst = appendHeader(dst, h, prefix, c)
	if slot := h.SlotOf(to); slot >= 0 && !whole && h.Units[slot] > 0 {
		dst = c.AppendStrip(dst, slot, 0, int(h.Units[slot]))
	}
	for i := range h.Riders {
		if rc, slot, first, count := rides(h, i, riders, to); count > 0 {
			dst = rc.AppendStrip(dst, slot, first, count)
		} else {
			dst = appendStripHeader(dst, 0, 0, 0, 0)
		}
	}
	if whole {
		dst = append(dst, c.payload...)
	}
	return dst
}

// SealedLen returns the bytes that Seal appends.
func SealedLen(h *Header, to uint64, prefix int, riders []*Codeword) int {
	n := prefix + headerLen(h)
	if h.Whole(to) {
		n += h.PayloadLen
	} else if base := h.BaseOf(to); h.Kind == Coded && base > 0 {
		n += Strip{Count: base, UnitLen: h.UnitLen()}.EncodedLen()
	}
	for i := range h.Riders {
		s := Strip{}
		if rc, _, _, count := rides(h, i, riders, to); count > 0 {
			s = Strip{Count: count, UnitLen: rc.h.UnitLen()}
		}
		n += s.EncodedLen()
	}
	return n
}

// rides returns the units that rider i brings to a node: all above the base
// units of the older entry, whatever other riders brought.
func rides(h *Header, i int, riders []*Codeword, to uint64) (c *Codeword, slot, first, count int) {
	if i >= len(riders) || riders[i] == nil {
		return nil, 0, 0, 0
	}
	c = riders[i]
	slot = c.h.SlotOf(to)
	if slot < 0 || slot >= len(h.Riders[i].Totals) {
		return nil, 0, 0, 0
	}
	first = int(c.h.Units[slot])
	return c, slot, first, min(int(h.Riders[i].Totals[slot]), c.h.D) - first
}

func headerLen(h *Header) int {
	n := fixedLen + 9*h.Slots + crcLen
	for i := range h.Riders {
		n += riderLen + len(h.Riders[i].Totals)
	}
	return n
}

// AppendHeader appends the header alone, as it stands in an envelope without a
// clear prefix. ParseHeader takes it apart.
func AppendHeader(dst []byte, h *Header) []byte { return appendHeader(dst, h, 0, nil) }

// appendHeader appends the clear prefix and the header.
func appendHeader(dst []byte, h *Header, prefix int, c *Codeword) []byte {
	start := len(dst)
	if c != nil {
		dst = append(dst, c.payload[:min(prefix, len(c.payload))]...)
	}
	for len(dst) < start+prefix {
		dst = append(dst, 0)
	}
	dst = append(dst, magic...)
	dst = append(dst, version, byte(h.Kind))
	dst = binary.LittleEndian.AppendUint16(dst, uint16(prefix))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(headerLen(h)))
	dst = appendFields(dst, h)
	return binary.LittleEndian.AppendUint32(dst, Checksum(dst[start:]))
}

// appendFields appends the fields of the header, as in the envelope from the payload's
// length on.
func appendFields(dst []byte, h *Header) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(h.PayloadLen))
	dst = binary.LittleEndian.AppendUint32(dst, h.PayloadCRC)
	dst = binary.LittleEndian.AppendUint64(dst, h.Encoder)
	dst = append(dst, byte(h.D), byte(h.Slots))
	dst = binary.LittleEndian.AppendUint16(dst, uint16(len(h.Riders)))
	for _, id := range h.Members {
		dst = binary.LittleEndian.AppendUint64(dst, id)
	}
	dst = append(dst, h.Units...)
	for i := range h.Riders {
		r := &h.Riders[i]
		dst = binary.LittleEndian.AppendUint64(dst, r.Index)
		dst = binary.LittleEndian.AppendUint64(dst, r.Term)
		dst = append(append(dst, byte(len(r.Totals))), r.Totals...)
	}
	return dst
}

// Fingerprint returns a hash of the header's fields. Logs that match at an entry have
// the same fingerprint there.
func (h *Header) Fingerprint() uint64 {
	var buf [256]byte
	const prime = 1099511628211 // FNV-1a
	sum := uint64(14695981039346656037)
	for _, b := range appendFields(append(buf[:0], byte(h.Kind)), h) {
		sum = (sum ^ uint64(b)) * prime
	}
	return sum
}
