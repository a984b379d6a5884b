# Names that are not written.
{ base, merge, ... }:
merge base {
  hosts.alpha = {
    group = null;
    users = [ ];
  };
  services.chat = {
    replicas = 1;
    port = 100;
    placement = {
      group = null;
      pins = [ ];
    };
  };
  roles.reader = {
    services = [
      "wiki"
      "chat"
    ];
    except = [ ];
  };
}
