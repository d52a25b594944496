//! How the daemon is asked to end: first politely, then in a hurry.

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};

/// How far it has come with ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Wish {
    GoOn,
    FinishWhatIsInHand,
    Hurry,
}

/// Tells whoever works when to stop.
#[derive(Debug, Clone)]
pub struct Stop(watch::Receiver<Wish>);

/// Makes others stop.
#[derive(Debug)]
pub struct Stopper(watch::Sender<Wish>);

/// Something that can be stopped, and what stops it.
pub fn channel() -> (Stopper, Stop) {
    let (sender, receiver) = watch::channel(Wish::GoOn);
    (Stopper(sender), Stop(receiver))
}

impl Stopper {
    /// Asks to finish what is in hand and to stop then.
    pub fn ask(&self) {
        self.0.send_if_modified(|wish| {
            let new = *wish < Wish::FinishWhatIsInHand;
            *wish = (*wish).max(Wish::FinishWhatIsInHand);
            new
        });
    }

    /// Asks to stop at once.
    pub fn hurry(&self) {
        self.0.send_replace(Wish::Hurry);
    }
}

impl Stop {
    /// Ends once it was asked to stop.
    pub async fn asked(&self) {
        self.reaches(Wish::FinishWhatIsInHand).await;
    }

    /// Ends once it was asked to stop at once.
    pub async fn hurried(&self) {
        self.reaches(Wish::Hurry).await;
    }

    /// Whether it was asked to stop.
    pub fn is_asked(&self) -> bool {
        *self.0.borrow() >= Wish::FinishWhatIsInHand
    }

    async fn reaches(&self, wish: Wish) {
        // Where nobody is left to ask, nobody needs the answer.
        let _ = self.0.clone().wait_for(|now| *now >= wish).await;
    }
}

/// Passes signals on: the first SIGTERM or SIGINT asks, the second hurries.
pub async fn on_signals(stopper: &Stopper) -> std::io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut asked = false;
    loop {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        match std::mem::replace(&mut asked, true) {
            false => {
                tracing::info!("asked to end; finishing the message in hand");
                stopper.ask();
            }
            true => {
                tracing::info!("asked again; ending at once");
                stopper.hurry();
            }
        }
    }
}
