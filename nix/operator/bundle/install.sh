#!/bin/sh
# Installs this bundle on a Linux with systemd. See --help.
set -eu
umask 022
# What everything is called here: another on a host that is a member of several clusters.
name=@NAME@

usage() {
	cat <<END
Usage: install.sh [--dry-run] [--root DIR] [--any-host]   install or upgrade
       install.sh --rollback [--dry-run] [--root DIR]     back to the programs before
       install.sh --remove [--purge] [--dry-run] [--root DIR]

Every step looks first and acts where something is to be done, so that doing it
again does nothing, and a run that was cut short is finished by the next.

--rollback keeps the documents in force: those of the version before may be months
old. Where they are wanted, /usr/local/lib/$name/previous/install.sh installs it anew.

  --dry-run   print what would be done
  --root DIR  install below DIR, such as a chroot; starts nothing
  --any-host  also where the SSH host key is not the one that was declared
  --purge     also remove what was fetched, /var/lib/$name. What a provider made
              itself, its keys among it, and /etc/$name/provider.hujson always stay

Afterwards it is there as $name-install.
END
}

die() {
	echo "install.sh: $*" >&2
	exit 1
}

# act does something, and says so.
act() {
	echo "+ $*"
	[ -n "$dry" ] || "$@"
}

# mark remembers what is under way until it is finished.
mark() { echo "${old:--} $version" >"$base/unfinished"; }

# start starts or restarts units. One that does not start is no reason to leave the
# rest undone.
start() { act systemctl "$@" || failed=1; }

# changing comes before the first change.
changing() {
	[ -n "$changed" ] || [ ! -d "$base" ] || act mark
	changed=1
}

# link makes $2 lead to $1, whatever it was.
link() {
	[ "$(readlink "$2" || :)" != "$1" ] || return 0
	[ ! -d "$2" ] || [ -L "$2" ] || die "$2 is a directory, not ours: move it away"
	changing
	act point "$1" "$2"
}

# put makes $2 a copy of $1.
put() {
	! cmp -s "$1" "$2" || return 0
	changing
	act copy "$1" "$2"
}

# point and copy replace $2 at once: nobody sees half of it.
point() {
	[ -d "${2%/*}" ] || mkdir -p "${2%/*}"
	ln -sfn "$1" "$2.new"
	mv -T "$2.new" "$2"
}
copy() {
	[ -d "${2%/*}" ] || mkdir -p "${2%/*}"
	cp "$1" "$2.new"
	mv -T "$2.new" "$2"
}

# gone removes files.
gone() {
	for path; do
		[ -e "$path" ] || [ -L "$path" ] || continue
		changing
		act rm -rf "$path"
	done
}

# manual makes the links of manual pages lead to the pages in $1.
manual() {
	going='' coming=''
	linked=$(find "$man" -lname "$current/man/*" -printf '%f ' 2>/dev/null || :)
	for page in $linked; do
		[ -e "$1/$page" ] || going="$going $page"
	done
	for path in "$1"/flor*; do
		case " $linked" in *" ${path##*/} "*) continue ;; esac
		[ ! -e "$path" ] || coming="$coming $current/man/${path##*/}"
	done
	[ -n "$going$coming" ] || return 0
	changing
	act pages "$man"
}
pages() {
	mkdir -p "$1"
	# shellcheck disable=SC2086 # names of pages hold no space
	[ -z "$going" ] || (cd "$1" && rm -f $going)
	# shellcheck disable=SC2086
	[ -z "$coming" ] || ln -sfn $coming "$1"
}

# purged removes a directory; where it is a mount point, what is in it.
purged() {
	[ -e "$1" ] || [ -L "$1" ] || return 0
	changing
	if mountpoint -q "$1"; then
		act find "$1" -mindepth 1 -delete
	else
		act rm -rf "$1"
	fi
}

# live tells whether there is a systemd to talk to.
live() { [ -z "$root" ] && [ -d /run/systemd/system ]; }

# enabled prints the units in $1 that something wants.
enabled() { grep -lx '\[Install\]' "$1/$name"-* | sed 's|.*/||'; }

# forget takes out the units that are not in $1.
forget() {
	going=''
	for path in "$units/$name"-*; do
		unit=${path##*/}
		[ ! -f "$path" ] || [ -e "$1/$unit" ] || going="$going $unit"
	done
	[ -n "$going" ] || return 0
	changing
	# At once, since systemd reads all its units again.
	# shellcheck disable=SC2046,SC2086 # names of units hold no space
	act systemctl --quiet ${root:+--root="$root"} disable $going
	for unit in $going; do
		! live || act systemctl stop "$unit"
		gone "$units/$unit"
	done
}

# switch puts the version $1, which is in $base, in force, with the documents of the
# version $2.
switch() {
	version=$1 tried=
	new=$base/$version
	[ -z "$dry" ] || [ -d "$new" ] || new=$here
	if [ -e "$base/unfinished" ]; then
		read -r old tried <"$base/unfinished"
		[ "$old" != - ] || old=
		changing
	else
		old=$(readlink "$base/current" || :)
	fi

	put "$new/$name.sysusers" "$root/etc/sysusers.d/$name.conf"
	[ -z "$changed" ] || act systemd-sysusers ${root:+--root="$root"} "$name.conf"
	put "$new/$name.sysctl" "$root/etc/sysctl.d/60-$name.conf"
	for program in flor flor-provider; do
		if [ -e "$new/bin/$program" ]; then
			link "$current/bin/$program" "$root/usr/local/bin/$program$suffix"
		else
			gone "$root/usr/local/bin/$program$suffix"
		fi
	done
	manual "$new/man"
	link "$current/install.sh" "$root/usr/local/sbin/$name-install"
	link "$2/documents" "$base/documents"
	link "/usr/local/lib/$name/documents" "$root/etc/$name/documents"
	link "$version" "$base/current"
	forget "$new/units"
	for path in "$new"/units/*; do
		put "$path" "$units/${path##*/}"
	done

	if [ -z "$changed" ]; then
		echo "$name $version: nothing to do"
		return
	fi
	! live || act systemctl daemon-reload
	# shellcheck disable=SC2046,SC2086 # names of units hold no space
	act systemctl --quiet ${root:+--root="$root"} enable $(enabled "$new/units")
	if live; then
		# All that others set too, in order: the last says it. How often that was is no matter.
		act systemctl reset-failed systemd-sysctl.service || :
		act systemctl restart systemd-sysctl.service || echo "the kernel gets its settings at the next boot"
		# shellcheck disable=SC2046,SC2086 # names of units hold no space
		start start $(enabled "$new/units" | grep -E '\.(path|socket|timer)$')
		start restart "$name-activate.service" "$name-guard.service" "$name-hosts-file.service"
		# The agent is there when it has an identity, which may be never. A new process takes over.
		start --no-block try-reload-or-restart "$name-agent.service"
		[ ! -e "$new/units/$name-host.service" ] || start try-restart "$name-host.service"
		if [ -e "$new/units/$name-provider.target" ]; then
			start --no-block restart "$name-provider.target"
		fi
	fi
	# Last, so that a run that was cut short and undone has not lost it. Never itself.
	before=$(readlink "$base/previous" || :)
	[ -z "$old" ] || [ "$old" = "$version" ] || before=$old
	[ "$before" != "$version" ] || before=$tried
	[ -z "$before" ] || [ "$before" = "$version" ] || link "$before" "$base/previous"
	for path in "$base"/*-*; do
		case ${path##*/} in "$version" | "$(readlink "$base/previous" || :)") ;; *) gone "$path" ;; esac
	done
	act rm -f "$base/unfinished"
	[ -z "$failed" ] || die "$version is installed, but not all units of it have started: systemctl --failed, and flor doctor, say why"
	echo "$name $version: installed"
}

# cluster prints whose the documents in $1 are, as "demo (demo.flor)", if there are any.
cluster() {
	sed -n 's/^{"cluster":"\([^"]*\)".*"trustDomain":"\([^"]*\)".*/\1 (\2)/p' "$1/manifest.json" 2>/dev/null || :
}

# host prints of which host the documents in $1 are, if there are any.
host() {
	at=$1
	[ -z "$root" ] || [ ! -L "$at" ] || at=$root$(readlink "$at")
	sed -n 's/^{"cluster":"[^"]*".*"host":"\([^"]*\)".*/\1/p' "$at/manifest.envelope.json" 2>/dev/null || :
}

# joins tells whether the host of the documents in $1 proves itself by a device key, which is
# made here, and not by an SSH host key that the flake declares.
joins() { grep -q '"identity":{[^{}]*"joins":true' "$1/manifest.json" 2>/dev/null; }

# alone sees that a name on the host is one cluster's, and that a cluster has one. The
# trust domain tells clusters apart.
alone() {
	ours=$(cluster "$here/documents")
	[ -n "$ours" ] || return 0
	for etc in "$root"/etc/florete*; do
		documents=$etc/documents
		[ -z "$root" ] || [ ! -L "$documents" ] || documents=$root$(readlink "$documents")
		there=$(cluster "$documents")
		as=${etc##*/}
		first="remove it here first, by $as-install --remove --purge or dpkg --purge"
		case ${there#* }$as in
		"${ours#* }$name") ;;
		*")$name") die "cluster $there is here as $as, and so would be $ours: declare hosts.<name>.instance in the topology of one of them, or $first" ;;
		"${ours#* }"*) [ "$do" != install ] || die "cluster $there is here as $as, and this bundle has it as $name: $first" ;;
		esac
	done
}

install() {
	version=$(cat "$here/version") || die "$here holds no bundle: unpack it whole"
	key=$root/etc/ssh/ssh_host_ed25519_key.pub
	if joins "$here/documents"; then
		there=$(host "$root/etc/$name/documents") ours=$(host "$here/documents")
		[ -n "$any" ] || [ "${there:-$ours}" = "$ours" ] || die "this bundle is of another host: it is of $ours, and $there is installed here: install it there, or give --any-host"
	elif [ -z "$any" ] && [ -e "$key" ] && ! grep -qF "$(cut -d' ' -f1,2 "$key")" "$here/documents/manifest.json"; then
		die "this bundle is of another host: its manifest does not declare $(cut -d' ' -f1,2 "$key") of $key: install it there, or declare this key, or give --any-host"
	fi
	if [ ! -d "$base/$version" ]; then
		act mkdir -p "$base"
		[ ! -e "$base/unpacked" ] || act rm -rf "$base/unpacked"
		act cp -R "$here" "$base/unpacked"
		act mv -T "$base/unpacked" "$base/$version"
	fi
	switch "$version" "$version"
}

rollback() {
	if [ -e "$base/unfinished" ]; then
		read -r _ version <"$base/unfinished"
	else
		version=$(readlink "$base/previous") || die "there is no version before the present one"
	fi
	documents=$(readlink "$base/documents") || documents=$(readlink "$base/current")/documents
	switch "$version" "${documents%/documents}"
}

remove() {
	old='' version=''
	if live && [ -e "$base/current" ]; then
		# Paths first: they would reach again the targets that are stopped.
		act systemctl stop "$name-*.path"
		act systemctl stop "$name-*"
		act "$base/current/bin/flor" ${suffix:+--instance="${suffix#_}"} hosts-file --remove
	fi
	forget /nonexistent
	manual /nonexistent
	# The version before first: without documents, another cluster may take this name.
	gone "$base/previous" "$root/usr/local/bin/flor$suffix" "$root/usr/local/bin/flor-provider$suffix" "$root/usr/local/sbin/$name-install" \
		"$root/etc/$name/documents" "$root/etc/sysusers.d/$name.conf" "$root/etc/sysctl.d/60-$name.conf" "$base"
	rmdir "$root/etc/$name" 2>/dev/null || :
	[ -z "$purge" ] || purged "$root/var/lib/$name"
	[ -z "$changed" ] || ! live || act systemctl daemon-reload
	for path in "$root/var/lib/$name" "$root/var/lib/$name-provider" "$root/etc/$name/provider.hujson"; do
		[ ! -e "$path" ] || echo "kept $path"
	done
	echo "$name: removed; rm -r removes what is kept"
}

main() {
	do=install dry='' root='' any='' purge='' changed='' failed='' old=''
	while [ $# -gt 0 ]; do
		case $1 in
		--dry-run) dry=1 ;;
		--rollback) do=rollback ;;
		--remove) do=remove ;;
		--purge) purge=1 ;;
		--any-host) any=1 ;;
		--root)
			[ $# -gt 1 ] || die "--root: want a directory"
			shift
			root=${1%/}
			;;
		--help)
			usage
			exit
			;;
		*) die "$1: no such option: see --help" ;;
		esac
		shift
	done
	[ -z "$purge" ] || [ "$do" = remove ] || die "--purge: only with --remove"
	[ "$(id -u)" = 0 ] || [ -n "$dry" ] || die "run it as root"
	here=$(dirname "$(readlink -f "$0")")
	base=$root/usr/local/lib/$name
	suffix=${name#florete}
	units=$root/etc/systemd/system
	man=$root/usr/local/share/man/man1
	current=/usr/local/lib/$name/current
	alone
	"$do"
}

main "$@"
