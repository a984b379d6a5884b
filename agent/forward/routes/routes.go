// Package routes notifies of changes of the host's addresses and routes (rtnetlink(7)).
package routes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// settle is how long to wait for what changes together.
const settle = 50 * time.Millisecond

const groups = unix.RTMGRP_LINK | unix.RTMGRP_IPV4_IFADDR | unix.RTMGRP_IPV4_ROUTE | unix.RTMGRP_IPV6_IFADDR | unix.RTMGRP_IPV6_ROUTE

// Watch calls changed after each change, until ctx ends. With an error it cannot.
func Watch(ctx context.Context, changed func()) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("routes of the host: %w", err)
	}
	socket := os.NewFile(uintptr(fd), "rtnetlink")
	defer socket.Close()
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: groups}); err != nil {
		return fmt.Errorf("routes of the host: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = socket.SetReadDeadline(time.Unix(1, 0)) })()
	for b := make([]byte, 1<<16); ; {
		if err := next(socket, b); err != nil && ctx.Err() == nil {
			return fmt.Errorf("routes of the host: %w", err)
		}
		select {
		case <-time.After(settle):
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

// next waits for a message. Which one is of no matter, nor that some were lost (ENOBUFS).
func next(socket *os.File, b []byte) error {
	_, err := socket.Read(b)
	if errors.Is(err, syscall.ENOBUFS) {
		return nil
	}
	return err
}
