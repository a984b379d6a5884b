# A host changes flags, directives and packages.
{ flake, modules, ... }: {
  imports = [ modules.default ];
  services.florete = {
    cluster = flake;
    hostName = "laptop";
    host.settings = {
      json = true;
      ssh-host-key = "/persist/ssh_host_ed25519_key";
    };
    forwarder = {
      hosts = false;
      package = {
        type = "derivation";
        name = "other";
        outPath = "/opt/other";
      };
      settings.socket = "/run/florete/50%.sock";
    };
    units."florete-agent.service".Service.LimitNOFILE = 1000;
  };
}
