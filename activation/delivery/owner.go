package delivery

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/nss"
)

// Owner is whom the files of a delivery belong to: an account, and the group of its name
// where there is one, since others share another; -1 for the user that runs this. Only root can give files away: for anyone else both are -1, so that what
// others may not read stays unreadable to them.
func Owner(d document.Deliver) (uid, gid int, err error) {
	uid, gid = -1, -1
	if os.Geteuid() != 0 {
		return uid, gid, nil
	}
	if d.Owner == "" {
		return uid, gid, nil
	}
	u, err := nss.Lookup(d.Owner)
	var unknown user.UnknownUserError
	if errors.As(err, &unknown) {
		return 0, 0, fmt.Errorf("owner %q: no such account on this host: create it", d.Owner)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("owner: %w", err)
	}
	if uid, err = strconv.Atoi(u.Uid); err != nil {
		return 0, 0, fmt.Errorf("owner %q: uid %q is no number", d.Owner, u.Uid)
	}
	if g, err := nss.LookupGroup(d.Owner); err == nil {
		if gid, err = strconv.Atoi(g.Gid); err != nil {
			return 0, 0, fmt.Errorf("group %q: gid %q is no number", d.Owner, g.Gid)
		}
	}
	return uid, gid, nil
}
