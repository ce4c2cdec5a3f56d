#!/bin/sh
# Brings what the tests need and the machine lacks: PostgreSQL, Redis, PgBouncer
# and Chromium. Servers that the environment names are used as they are, and the
# tests start the others themselves, so that nothing has to run when this ends.
set -eu

have() { command -v "$1" >/dev/null 2>&1; }

# Distributions keep PostgreSQL's server out of PATH.
have_postgres() {
	have postgres && return 0
	for f in /usr/lib/postgresql/*/bin/postgres /usr/pgsql-*/bin/postgres; do
		[ -x "$f" ] && return 0
	done
	return 1
}

docker_works() { have docker && docker info >/dev/null 2>&1; }

packages=
want() { packages="$packages $1"; }

# The tests that kill, pause and fail over need binaries of their own; Docker
# serves the others.
have_postgres || want postgresql
have redis-server || have valkey-server || want redis-server
have pgbouncer || [ -x /usr/sbin/pgbouncer ] || want pgbouncer
have chromium || have chromium-browser || have google-chrome || want chromium
[ -z "$packages" ] && exit 0

if ! have apt-get; then
	echo "make servers: missing:$packages" >&2
	echo "There is no apt-get here. Install them with this system's packages, so that they are in PATH." >&2
	docker_works && echo "Docker can stand in for PostgreSQL and Redis, but not in the tests that kill servers." >&2
	exit 1
fi
sudo=
if [ "$(id -u)" -ne 0 ]; then
	if ! have sudo; then
		echo "make servers: as root, run: apt-get install --no-install-recommends$packages" >&2
		exit 1
	fi
	sudo=sudo
fi
failed() {
	echo "make servers: apt-get could not install:$packages" >&2
	echo "The tests need them in PATH. Connect to a package mirror, or install them in another way." >&2
	exit 1
}
echo "make servers: installing$packages"
$sudo apt-get update -qq || failed
# The packages would start servers of their own; the tests start theirs.
# shellcheck disable=SC2086
$sudo env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
	apt-get install -qq -y --no-install-recommends $packages || failed
