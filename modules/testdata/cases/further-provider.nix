# A host that is only in the second cluster, and provides there.
{ further, instance, ... }: {
  imports = [
    (instance "blue")
    ({ config, ... }: { seen = config.services.florete_blue.provider.settings; })
  ];
  services.florete_blue = {
    cluster = further { };
    hostName = "drhorrible";
    host.openFirewall = true;
    provider.usersFile = "/run/keys/users.hujson";
  };
}
