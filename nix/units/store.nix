# The member of the shared store on a provider host: etcd of the system, with the certificates that
# an operator put beside the settings of providers.
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
  # systemd copies certificates when it starts a unit, so the units restart after an operator
  # replaced them.
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
          # A copy of the files may have kept another owner.
          CapabilityBoundingSet = "CAP_DAC_READ_SEARCH";
          MemoryMax = "256M";
          Restart = "no"; # completed files start it again
          Type = "oneshot";
          UMask = "0077";
          X-RestartIfChanged = false;
        };
    };
  };

  #   member   from the policy
  #   etcd     path of the program
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
        # As ca.StoreMember requires: a client certificate does not authorize a member.
        peer-cert-allowed-cn = "florete store member";
        auto-compaction-mode = "periodic";
        auto-compaction-retention = "1h";
        quota-backend-bytes = "8589934592";
        logger = "zap";
      };
      # systemd replaces the names of credentials and directories.
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
          # A new store, unless the operator has written the output of etcdctl to this file until
          # the next boot: then the member joins the existing store.
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
          # It is ready only when a majority of members runs.
          TimeoutStartSec = "infinity";
          UMask = "0077";
        };
        Install.WantedBy = [ "multi-user.target" ];
      };
    };
}
