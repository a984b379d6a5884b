# A provider, where the operator has written its settings.
common:
let
  inherit (builtins) attrNames map toJSON;
  inherit (common) bind command etc privileged service unit;
  names = import ../names.nix;
in
rec {
  # Is nothing given to its account by others: a certificate of another provider,
  # files that an operator keeps?
  alone = policy: policy.kinds ? cert && !policy.kinds ? file;

  units = { policy, bin, settings, credentials }:
    let capability = bind (privileged policy.provider.listen); in
    {
      ${unit "provider.service"} = {
        Unit = {
          Description = "Answer what the hosts of the cluster need";
          After = [ "network.target" ];
          ConditionPathExists = "${etc}/provider.hujson";
          StartLimitIntervalSec = 0;
        } // (if settings == null then { } else { X-Settings = names.sri (toJSON settings); });
        Service = service // {
          ExecStart = command "${bin}/flor-provider run" { settings = "${etc}/provider.hujson"; };
          User = unit "provider";
          DynamicUser = alone policy;
          AmbientCapabilities = capability;
          CapabilityBoundingSet = capability;
          LimitNOFILE = 65536;
          MemoryMax = "2G";
          PrivateUsers = capability == "";
          RestrictAddressFamilies = "AF_INET AF_INET6 AF_UNIX";
          StateDirectory = unit "provider";
          StateDirectoryMode = "0700";
          UMask = "0077";
        } // (if credentials == { } then { } else {
          LoadCredential = map (n: "${n}:${credentials.${n}}") (attrNames credentials);
        });
        Install.WantedBy = [ "multi-user.target" ];
      };
    };
}
