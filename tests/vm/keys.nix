# What an operator makes once, for tests alone: root CA, signing key, SSH host keys.
{ runCommand, florete, nix, openssh }:
runCommand "florete-test-keys" { nativeBuildInputs = [ florete nix openssh ]; } ''
  mkdir $out && cd $out
  florctl ca init --trust-domain demo.flor --out .
  export HOME=$TMPDIR NIX_STATE_DIR=$TMPDIR NIX_CONFIG="experimental-features = nix-command"
  nix key generate-secret --key-name demo-1 > signing.key
  for host in drhorrible raishan ursula mgmt01 laptop next; do
    ssh-keygen -q -t ed25519 -N "" -C "" -f $host
  done
  {
    echo '{ "keys": ["'"$(nix key convert-secret-to-public < signing.key)"'"],'
    echo '  "nextHostKey": "'"$(cat next.pub)"'",'
    echo '  "addresses": {'
    n=0
    for host in drhorrible raishan ursula mgmt01 laptop; do
      n=$((n + 1))
      echo "    $([ $n = 1 ] || echo ,)\"$host\": \"10.77.0.$n\""
    done
    echo '  }, "sshHostKeys": {'
    sep=
    for host in drhorrible raishan ursula mgmt01 laptop; do
      echo "    $sep\"$host\": \"$(cat $host.pub)\""
      sep=,
    done
    echo '  } }'
  } > facts.json
''
