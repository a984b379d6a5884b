# The keys and files of an operator, for tests only:
#   facts.json         input of the topology
#   operator/          root CA, the next one in next/, key that signs documents
#   ssh/<host>{,.pub}  SSH host keys, and a further one, next
#   published/         signed documents of each revision
# florete is the source of the flake, program the commands.
{
  runCommand,
  florete,
  program,
  git,
  nix,
  openssh,
}:
runCommand "florete-test-keys"
  {
    nativeBuildInputs = [
      git
      nix
      openssh
      program
    ];
  }
  ''
    export HOME=$TMPDIR NIX_STORE_DIR=$TMPDIR/nix/store NIX_STATE_DIR=$TMPDIR/nix/var NIX_LOG_DIR=$TMPDIR/nix/log
    export NIX_CONFIG=$'experimental-features = nix-command flakes\nbuild-users-group =\nsubstituters ='
    mkdir -p $out/ssh $out/published && cd $out
    for root in operator operator/next; do
      florctl ca init --trust-domain demo.flor --out $root
    done
    nix key generate-secret --key-name demo-1 > operator/signing.key
    chmod 600 operator/signing.key
    for host in drhorrible raishan ursula mgmt01 laptop next; do
      ssh-keygen -q -t ed25519 -N "" -C "" -f ssh/$host
    done
    {
      echo '{ "keys": ["'"$(nix key convert-secret-to-public < operator/signing.key)"'"],'
      echo '  "nextHostKey": "'"$(cat ssh/next.pub)"'",'
      echo '  "addresses": {'
      n=0
      for host in drhorrible raishan ursula mgmt01 laptop; do
        n=$((n + 1))
        echo "    $([ $n = 1 ] || echo ,)\"$host\": \"10.77.0.$n\""
      done
      echo '  }, "sshHostKeys": {'
      sep=
      for host in drhorrible raishan ursula mgmt01 laptop; do
        echo "    $sep\"$host\": \"$(cat ssh/$host.pub)\""
        sep=,
      done
      echo '  } }'
    } > facts.json

    cp -r ${florete}/tests/hosts/cluster $TMPDIR/cluster
    chmod -R u+w $TMPDIR/cluster && cd $TMPDIR/cluster
    cp $out/operator/ca.crt $out/facts.json .
    cp $out/operator/next/ca.crt next.crt
    git init --quiet && git add --all
    nix flake lock git+file://$PWD --override-input florete path:${florete}
    git add --all
    # The serials of the hosts' own generations, see default.nix.
    GIT_COMMITTER_DATE="@1 +0000" git -c user.name=operator -c user.email=operator@demo.flor commit --quiet --message "the cluster"
    for revision in $(nix eval --raw git+file://$PWD#florete --apply 'all: toString (builtins.attrNames all)'); do
      florctl publish git+file://$PWD --cluster $revision --key $out/operator/signing.key --replace-roots --out $out/published/$revision.json
    done
  ''
