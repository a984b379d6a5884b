# All five hosts of the example run on one machine, under one account: each has an
# address of its own, its local listeners in a range of their own, and says which
# of its identities that account is. On machines of their own none of this is
# written, only the address and the key.
facts:
let
  on = number: host: name: host // {
    address = "127.77.0.${toString number}";
    loopback = "127.${toString (100 + number)}.0.0/16";
    sshHostKey = facts.sshHostKeys.${name};
    callers = { node = [ facts.uid ]; } // host.callers or { };
  };
  me = [ facts.uid ];
in
builtins.mapAttrs (name: host: host name) {
  # The forge: it provides for all the others.
  drhorrible = on 1 { };

  # The beacon tells the world about the services.
  raishan = on 2 {
    roles = [ "beacon" ];
    users = [ "bob" ];
    callers."user/bob" = me;
  };

  ursula = on 3 {
    callers."service/outline" = me;
  };

  # Where the operator works.
  mgmt01 = on 4 {
    roles = [ "operator" ];
  };

  laptop = on 5 {
    kind = "device";
    users = [ "alice" ];
    callers."user/alice" = me;
  };
}
