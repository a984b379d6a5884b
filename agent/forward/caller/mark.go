package caller

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// UDP has no connections. A process may send a datagram with any of the host's addresses as the
// source, or may have ended when the datagram is read. The sender is certain only if package guard
// makes the kernel mark the datagram (SO_MARK, socket(7)) with the sender's uid: eight bits
// identify the mark, and 24 contain the uid.
const (
	markTag  = 0xf1 << 24
	markMask = 0xff << 24

	// MarkOthers marks the datagrams of all accounts without a mark of their own.
	MarkOthers = markTag | (1<<24 - 1)
)

// Mark returns the mark for datagrams of an account. It returns false if the uid is too large.
func Mark(uid uint32) (uint32, bool) { return markTag | uid, uid < MarkOthers&^markMask }

// ReceiveMarks makes a socket receive marks as control messages. Older kernels, without support,
// deliver datagrams without marks.
func ReceiveMarks(fd uintptr) error {
	return unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVMARK, 1)
}

// MarksSpace is the buffer space needed for control messages.
var MarksSpace = unix.CmsgSpace(4)

// MarkedUID returns the sender's uid from the control messages of a datagram, if it is marked.
func MarkedUID(oob []byte) (uint32, bool) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return 0, false
	}
	for _, m := range messages {
		if m.Header.Level != unix.SOL_SOCKET || m.Header.Type != unix.SO_MARK || len(m.Data) < 4 {
			continue
		}
		mark := binary.NativeEndian.Uint32(m.Data)
		return mark &^ markMask, mark&markMask == markTag
	}
	return 0, false
}
