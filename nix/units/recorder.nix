# Records SSH sessions. Every account may connect, since sessions run under any account.
common:
let
  inherit (common)
    command
    ofSocket
    offline
    prefix
    run
    simple
    state
    unit
    ;
in
{
  # Reports whether sessions at a published service can be recorded.
  recordable = p: p.remote or null == "ssh";

  units = { bin }: {
    ${unit "recorder.socket"} = {
      Unit.Description = "Recording of SSH sessions";
      Socket = {
        DirectoryMode = "0755";
        ListenStream = "${run}/recorder.sock";
        SocketMode = "0666";
      };
      Install.WantedBy = [ "sockets.target" ];
    };
    ${unit "recorder.service"} = {
      Unit = {
        Description = "Record SSH sessions";
      }
      // ofSocket [ "recorder.socket" ];
      Service =
        simple
        // offline
        // {
          ExecStart = command "${bin}/flor recorder" { inherit state; };
          # Activation, which reports the recordings, reads them as root.
          User = prefix;
          Group = prefix;
          CapabilityBoundingSet = "";
          LimitNOFILE = 65536;
          MemoryMax = "512M";
          RestartSec = 1;
          StateDirectory = "${prefix}/recordings";
          StateDirectoryMode = "0700";
          UMask = "0077";
          # A restart would end the sessions that it records. It ends by itself when there are none.
          X-RestartIfChanged = false;
        };
    };
  };
}
