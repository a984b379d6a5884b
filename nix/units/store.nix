# The member of the store that provider hosts share, where the host keeps one: etcd of the
# system, with the certificates that an operator put beside the settings of providers.
common:
let
  inherit (builtins) attrNames concatStringsSep match;
  inherit (common)
    command
    etc
    offline
    simple
    service
    state
    unit
    word
    ;
  names = [
    "ca.crt"
    "member.crt"
    "member.key"
  ];
in
{
  # systemd copies certificates when it starts what uses them, so that starts again when an
  # operator has replaced them.
  certificates = { bin }: {
    ${unit "store-certificates.path"} = {
      Unit.Description = "Wait until an operator replaces certificates of the shared store";
      Path.PathChanged = "${etc}/store";
      Install.WantedBy = [ "paths.target" ];
    };
    ${unit "store-certificates.service"} = {
      Unit = {
        Description = "Restart what has former certificates of the shared store";
        StartLimitIntervalSec = 0;
      };
      Service =
        simple
        // offline
        // {
          ExecStart = command "${bin}/flor store-certificates" { inherit state; };
          # Another owner's files, which a copy may have kept.
          CapabilityBoundingSet = "CAP_DAC_READ_SEARCH";
          MemoryMax = "256M";
          Restart = "no"; # files that are not whole yet start it again
          Type = "oneshot";
          UMask = "0077";
          X-RestartIfChanged = false;
        };
    };
  };

  #   member   of the policy
  #   etcd     its program
  units =
    { member, etcd }:
    let
      credential = name: "%d/${name}";
      flags = {
        name = member.name;
        data-dir = "%S/${unit "store"}/member";
        listen-client-urls = concatStringsSep "," member.clients.listen;
        advertise-client-urls = concatStringsSep "," member.clients.called;
        listen-peer-urls = concatStringsSep "," member.peers.listen;
        initial-advertise-peer-urls = concatStringsSep "," member.peers.called;
        cert-file = credential "member.crt";
        key-file = credential "member.key";
        trusted-ca-file = credential "ca.crt";
        client-cert-auth = "true";
        peer-cert-file = credential "member.crt";
        peer-key-file = credential "member.key";
        peer-trusted-ca-file = credential "ca.crt";
        peer-client-cert-auth = "true";
        # What ca.StoreMember is: a client's certificate makes nobody a member.
        peer-cert-allowed-cn = "florete store member";
        auto-compaction-mode = "periodic";
        auto-compaction-retention = "1h";
        quota-backend-bytes = "8589934592";
        logger = "zap";
      };
      # Credentials and directories are systemd's to fill in.
      flag =
        name: value:
        " --${name}=${if match "%[dS]/.*" value == null then word value else value}";
    in
    {
      ${unit "store.service"} = {
        Unit = {
          Description = "Keep the state that provider hosts of the cluster share";
          After = [ "network.target" ];
          ConditionPathExists = "${etc}/store/member.key";
          StartLimitIntervalSec = 0;
        };
        Service = service // {
          ExecStart = concatStringsSep "" ([ etcd ] ++ map (n: flag n flags.${n}) (attrNames flags));
          # Of a new store, unless the operator has put what etcdctl printed beside it until the
          # next boot: a member joins one that is at work.
          Environment = "ETCD_INITIAL_CLUSTER=${concatStringsSep "," member.cluster}";
          EnvironmentFile = "-/run/${unit "store"}.env";
          User = unit "store";
          DynamicUser = true;
          CapabilityBoundingSet = "";
          LimitNOFILE = 65536;
          LoadCredential = map (n: "${n}:${etc}/store/${n}") names;
          MemoryMax = "2G";
          PrivateUsers = true;
          RestrictAddressFamilies = "AF_INET AF_INET6 AF_UNIX";
          StateDirectory = unit "store";
          StateDirectoryMode = "0700";
          # Where the others are away it is ready only when one of them has come.
          TimeoutStartSec = "infinity";
          UMask = "0077";
        };
        Install.WantedBy = [ "multi-user.target" ];
      };
    };
}
