package caller

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// UDP has no connections, and a process may write any of the host's addresses as the
// source of a datagram, or be gone when it is read. Who sent it is known for certain only
// where package guard has the kernel mark it (SO_MARK, socket(7)) with the sender's uid:
// eight bits that mark it as such, and 24 of uid.
const (
	markTag  = 0xf1 << 24
	markMask = 0xff << 24

	// MarkOthers is the mark for all accounts that have none of their own.
	MarkOthers = markTag | (1<<24 - 1)
)

// Mark is what datagrams of an account are marked with; false where its uid is too large.
func Mark(uid uint32) (uint32, bool) { return markTag | uid, uid < MarkOthers&^markMask }

// ReceiveMarks has a socket pass marks on as control messages. Older kernels, which do
// not, pass datagrams without.
func ReceiveMarks(fd uintptr) error {
	return unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVMARK, 1)
}

// MarksSpace is the room that control messages need.
var MarksSpace = unix.CmsgSpace(4)

// MarkedUID is the sender's uid in the control messages of a datagram, if it is marked.
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
