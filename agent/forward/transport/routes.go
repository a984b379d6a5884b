package transport

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// routeSettle is the time within which several changes of routes count as one change.
const routeSettle = 50 * time.Millisecond

const routeGroups = unix.RTMGRP_LINK | unix.RTMGRP_IPV4_IFADDR | unix.RTMGRP_IPV4_ROUTE | unix.RTMGRP_IPV6_IFADDR | unix.RTMGRP_IPV6_ROUTE

// watchRoutes calls a function after each change of the host's addresses and routes (rtnetlink(7)),
// until ctx ends. It returns an error if it cannot watch them.
func watchRoutes(ctx context.Context, changed func()) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("routes of the host: %w", err)
	}
	socket := os.NewFile(uintptr(fd), "rtnetlink")
	defer socket.Close()
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: routeGroups}); err != nil {
		return fmt.Errorf("routes of the host: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = socket.SetReadDeadline(time.Unix(1, 0)) })()
	for b := make([]byte, 1<<10); ; {
		if err := nextRoute(socket, b); err != nil && ctx.Err() == nil {
			return fmt.Errorf("routes of the host: %w", err)
		}
		select {
		case <-time.After(routeSettle):
		case <-ctx.Done():
			return nil
		}
		for {
			if n, _, err := unix.Recvfrom(fd, b, unix.MSG_DONTWAIT); n <= 0 || err != nil {
				break
			}
		}
		changed()
	}
}

// nextRoute waits for the next message about routes. The content of messages does not matter, so a
// truncated message is fine, and lost messages (ENOBUFS) count as one.
func nextRoute(socket *os.File, b []byte) error {
	_, err := socket.Read(b)
	if errors.Is(err, syscall.ENOBUFS) {
		return nil
	}
	return err
}
