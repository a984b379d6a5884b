package caller

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// Datagrams carry marks because UDP has no connections by which a sender can be found. A process
// may send a datagram from any address of the host, and may have ended when the forwarder reads it.
// The sender is certain only if the kernel marks the datagram with the sender's uid (SO_MARK,
// socket(7)). upstream.RunGuard sets this up. Eight bits identify the mark, and 24 bits contain the
// uid.
const (
	markTag  = 0xf1 << 24
	markMask = 0xff << 24

	// MarkOthers is the mark of datagrams from accounts that have no mark of their own.
	MarkOthers = markTag | (1<<24 - 1)
)

// Mark returns the packet mark (SO_MARK) for datagrams from the account with the given uid. It
// returns false if the uid is too large for a mark.
func Mark(uid uint32) (uint32, bool) { return markTag | uid, uid < MarkOthers&^markMask }

// ReceiveMarks makes a socket deliver the mark of each received datagram in a control message, for
// MarkedUID. It returns an error if the kernel does not support this.
func ReceiveMarks(fd int) error {
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVMARK, 1)
}

// MarksSpace is the size in bytes of a buffer for the control messages that contain a mark.
var MarksSpace = unix.CmsgSpace(4)

// MarkedUID returns the uid of the sender of a datagram. The parameter oob contains the datagram's
// control messages, among them the mark. It returns false if the datagram has no mark of this
// program.
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
