# Three hosts issue certificates, serve documents, and keep the state of all providers; and the
# same, where drhorrible had all state in files.
base:
let
  hosts = [
    "drhorrible"
    "raishan"
    "mgmt01"
  ];
  providers = base.providers // {
    cert = base.providers.cert // {
      inherit hosts;
    };
    config = base.providers.config // {
      inherit hosts;
    };
    store = {
      kind = "etcd";
      inherit hosts;
    };
  };
in
[
  {
    name = "replicated";
    change = { inherit providers; };
  }
  {
    name = "moved";
    change.providers = providers // {
      store = providers.store // {
        from = [ "drhorrible" ];
      };
    };
  }
]
